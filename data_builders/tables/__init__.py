"""Any table of pairs as a task: two columns of a file, a folder or a dataset on the Hub."""
