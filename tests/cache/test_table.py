"""A table is a value to hand on, remade only when it changed."""

from __future__ import annotations

from twostroke.cache.keys import Group
from twostroke.cache.table import Store, Table


def test_the_ids_are_the_blocks_and_stay_one_object_until_they_change() -> None:
    table = Table("", blocks=[4, 2])
    first = table.ids
    assert first == (4, 2)
    assert table.ids is first
    table.blocks.append(7)
    table.changed()
    assert [*table.ids] == [4, 2, 7]
    assert first == (4, 2)


def test_tables_are_told_apart_by_identity() -> None:
    assert Table("") != Table("")
    assert len({Table(""), Table("")}) == 2


def test_a_store_has_nothing_to_spare_unless_told() -> None:
    assert Store(Group("target"), 8) == Store(Group("target"), 8, 0, "", "")
