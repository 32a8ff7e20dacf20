"""core/http/API.md, "Requests": the pages of the lists of endpoints, templates and keys."""

import pytest

from management_api import ManagementTest

LISTS = ("/endpoints", "/templates", "/keys")


class ListPageTest(ManagementTest):
    @pytest.fixture(autouse=True)
    def some_of_each(self, remove_what_was_made):
        template = self.new_template()
        for number in range(3):
            self.new_template()
            self.new_endpoint(template)
            key = self.server.new_key("client", name=f"key {number}")
            self.at_end.callback(lambda made=key["id"]: self.server.request("DELETE", f"/v1/keys/{made}"))

    def pages(self, path, limit):
        cursor = ""
        while True:
            page = self.call("GET", f"{path}?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
            yield page
            if len(page) < limit:
                return
            cursor = page[-1]["id"]

    @pytest.mark.parametrize("path", LISTS)
    def test_pages_are_the_list(self, path):
        whole = self.call("GET", path)
        assert len(whole) >= 3
        ids = [one["id"] for one in whole]
        assert ids == sorted(ids)
        for limit in (1, 2, len(whole), 1_000):
            pages = list(self.pages(path, limit))
            assert [one["id"] for page in pages for one in page] == ids
            assert all(len(page) == limit for page in pages[:-1])

    @pytest.mark.parametrize("path", LISTS)
    def test_a_cursor_alone_asks_for_the_rest(self, path):
        whole = [one["id"] for one in self.call("GET", path)]
        assert [one["id"] for one in self.call("GET", f"{path}?cursor={whole[0]}")] == whole[1:]
        assert self.call("GET", f"{path}?cursor=zzzzzzzzzzzzzzzzzzzzzzzz") == []

    @pytest.mark.parametrize("path", LISTS)
    def test_a_wrong_page(self, path, subtests):
        for query, field in (("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("limit=", "limit"),
                             ("cursor=", "cursor"), ("cursor=a%20b", "cursor"), ("cursor=" + "a" * 129, "cursor"),
                             ("cursor=a&cursor=b", "cursor"), ("limit=1&limit=2", "limit")):
            with subtests.test(query=query):
                self.assert_faults(self.server.request("GET", f"/v1{path}?{query}"), field)
