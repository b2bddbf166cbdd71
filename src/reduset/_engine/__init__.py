"""The only place that knows about speed: compiled loops over blocks, in bounded memory."""
