"""HeadcountConfig and the names it allows."""
