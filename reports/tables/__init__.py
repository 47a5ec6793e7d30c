"""Tables of the report, as texts: the HTML page and the Markdown page show the same ones."""
