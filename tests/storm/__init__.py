"""The storm: kills, nonsense, broken files, a full disk and a hostile Hub, each repeated by its seed (run.py)."""
