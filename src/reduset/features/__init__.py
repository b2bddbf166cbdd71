"""Features of bags of points, for linear models on distributions (Sutherland, Oliva, Póczos & Schneider 2016)."""
