"""A job changes few entries of indexes on SQLite, because each change is a page of the write-ahead log."""

import pathlib
import sys

import pytest

from http_case import HttpTest
from jobq_server import is_foreign

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from index_changes import BRIEF_CHANGES, MOST_CHANGES, count_lives  # noqa: E402


class IndexChangesTest(HttpTest):
    @pytest.mark.skipif(is_foreign(), reason="reads the database of a server of this build")
    def test_a_life_changes_few_entries(self):
        """core/decisions/storage.md, "SQLite": at most 8 changes a life, and 6 of a job that runs at its insert."""
        lives = count_lives()
        assert lives["plain"].total <= MOST_CHANGES, lives["plain"].table()
        assert lives["fused"].total <= 6, lives["fused"].table()
        assert lives["brief"].total <= BRIEF_CHANGES, lives["brief"].table()
