"""Is a sequence of integers in order?"""
