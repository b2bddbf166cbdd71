"""Reproductions of the tables and figures of the five papers, one file each."""
