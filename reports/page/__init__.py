"""The page: report.html and report.md."""
