"""The page on transformers' own models says what the tests find."""

import stock_table


def test_the_compatibility_table_is_up_to_date():
    assert stock_table.table_in(stock_table.PAGE.read_text()) == stock_table.table()
