"""A job changes few entries of indexes on SQLite, because each change is a page of the write-ahead log."""

import pathlib
import sys

import pytest

from http_case import HttpTest
from jobq_server import is_foreign

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from index_changes import count_lives  # noqa: E402


class IndexChangesTest(HttpTest):
    @pytest.mark.skipif(is_foreign(), reason="reads the database of a server of this build")
    def test_a_life_changes_few_entries(self):
        """core/decisions/storage.md: at most 6 changes a life, and 4 of a job that runs at its insert."""
        lives = count_lives()
        for way, most in (("plain", 6), ("fused", 4), ("brief", 4)):
            life = lives[way]
            assert life.total <= most, life.table()
            assert life.transitions["listing"].total() == 4, life.table()
