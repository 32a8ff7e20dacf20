"""GET /docs as a person sees the page, in Chromium."""

import json
import os
import re
import shlex
import subprocess
import urllib.parse

import pytest

from http_case import HttpTest
from pace import HANG

READY = "document.getElementById('count').textContent"
RENDER_AGAIN = "api => { byId('groups').replaceChildren(); render(api); }"
HOSTILE = "<img src=x onerror='hit = 1'><script>hit = 1</script>"
MARKED = {
    "a **b** `c`": "<p>a <strong>b</strong> <code>c</code></p>",
    "**a `b**c` d**": "<p><strong>a <code>b**c</code> d</strong></p>",
    "a\nb\n\nc": "<p>a b</p><p>c</p>",
    "a:\n- b\n  c\n- d": "<p>a:</p><ul><li>b c</li><li>d</li></ul>",
    "1. a\n2. b": "<ol><li>a</li><li>b</li></ol>",
    "[a `b`](docs#c)": '<p><a href="docs#c">a <code>b</code></a></p>',
    "[a](javascript:b)": "<p>[a](javascript:b)</p>",
    "[a](https://[)": "<p>[a](https://[)</p>",
    "2 ** 3, a `b": "<p>2 ** 3, a `b</p>",
    "<b>a</b> **<i>**": "<p>&lt;b&gt;a&lt;/b&gt; <strong>&lt;i&gt;</strong></p>",
}

# Returns the texts with the lowest contrast to their background, as [ratio, text].
CONTRASTS = """(() => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => channels(colour).slice(0, 3).map(each => each / 255)
    .map(each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
  const background = element => {
    const colour = getComputedStyle(element).backgroundColor;
    return channels(colour)[3] === 0 && element.parentElement ? background(element.parentElement) : colour;
  };
  return [...document.body.querySelectorAll("*")].filter(element => element.checkVisibility()
    && [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim())).map(element => {
    const [low, high] = [light(getComputedStyle(element).color), light(background(element))].sort((a, b) => a - b);
    return [(high + 0.05) / (low + 0.05), element.textContent.slice(0, 40)];
  }).sort(([a], [b]) => a - b).slice(0, 5);
})()"""


class DocsPageTest(HttpTest):
    @pytest.fixture(autouse=True)
    def description(self, question, browser_page):
        self.page = browser_page
        self.api = self.server.request("GET", "/openapi.json", key=None).json()

    def open_docs(self, **appearance):
        self.page.show_as(**appearance)
        self.page.load(self.server.url + "/docs")
        self.page.until(READY, "the page shows the calls")
        return self.page

    def operations(self):
        return {f"{method.upper()} {path}": operation for path, item in self.api["paths"].items()
                for method, operation in item.items() if method != "parameters"}

    @staticmethod
    def open_all(page):
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")

    @staticmethod
    def shown_calls(page):
        return page.evaluate("[...document.querySelectorAll('h3')].filter(each => each.checkVisibility())"
                             ".map(each => each.textContent).filter(text => text.includes('/'))")

    def test_every_call_is_shown_without_marks_and_from_this_server_alone(self):
        page = self.open_docs()
        self.open_all(page)
        assert sorted(self.shown_calls(page)) == sorted(self.operations())
        assert sorted(page.evaluate("[...document.querySelectorAll('nav a[href^=\"#call-\"]')].map(each => each.textContent)")) \
            == sorted(self.operations())
        assert page.evaluate("[...document.querySelectorAll('h2')].map(each => each.textContent)") == \
            [tag["name"] for tag in self.api["tags"]] + ["Objects"]
        text = page.evaluate("document.body.innerText")
        assert not re.search(r"\*\*|`", text)
        for operation in self.operations().values():
            assert re.sub(r"\*\*|`", "", operation.get("description", "")) in text
        assert page.evaluate("document.querySelectorAll('#about li').length") > 5
        origins = {urllib.parse.urlsplit(request.url)[:2] for request in page.requests}
        assert origins == {urllib.parse.urlsplit(self.server.url)[:2]}

    def test_the_search_narrows_the_calls(self):
        page = self.open_docs()
        for words, expected in (
                ("post PURGE-queue", ["POST /v2/{endpoint}/purge-queue", "POST /sdk/v2/{endpoint}/purge-queue"]),
                ("Copy the storage", ["POST /v1/backup"]),  # a summary
                ("disconnect of the client", ["POST /v1/backup"]),  # a description
                ("purge nothing-has-this", [])):
            page.fill("#search", words)
            assert self.shown_calls(page) == expected
            assert page.evaluate("[...document.querySelectorAll('nav li li')].filter(each => each.checkVisibility())"
                                 ".map(each => each.textContent)") == expected
            assert page.evaluate(READY) == f"{len(expected)} of {len(self.operations())} calls"
        page.fill("#search", "")
        assert sorted(self.shown_calls(page)) == sorted(self.operations())

    def test_an_address_of_a_call_survives_a_reload(self):
        page = self.open_docs()
        page.press("nav a[href='#call-makeBackup']")
        in_view = """(() => {
          const box = document.getElementById("call-makeBackup"), top = box && box.getBoundingClientRect().top;
          return box && box.open && location.hash === "#" + box.id && top >= -1 && top < innerHeight; })()"""
        page.until(in_view, "the call of the link is open and visible")
        page.reload()
        page.until(in_view, "the call is open and visible after the reload")

    def test_a_link_to_a_hidden_place_ends_the_search(self):
        page = self.open_docs()
        page.fill("#search", "purge-queue")
        page.press("main details:not([hidden]) summary")
        page.press("main details[open] a[href='#object-QueueError']")
        page.until("document.querySelector('#object-QueueError dl').checkVisibility()", "the object is open")
        assert page.evaluate("document.getElementById('search').value") == ""

    def test_the_lines_for_curl_run(self):
        page = self.open_docs()
        lines = dict(page.evaluate("[...document.querySelectorAll('main details')].filter(box => box.querySelector('.curl'))"
                                   ".map(box => [box.querySelector('h3').textContent, box.querySelector('.curl').textContent])"))
        assert list(lines) and set(lines) == set(self.operations())
        for call, line in lines.items():
            words = shlex.split(line)
            assert words[0] == "curl"
            assert any(word.startswith(self.server.url + "/") for word in words)
            assert ("Authorization: Bearer $JOBQ_KEY" in words) == (self.operations()[call].get("security") != [])
        ended = self.run_line(lines["POST /v2/{endpoint}/runsync"])
        assert (ended["status"], ended["output"]) == ("COMPLETED", {"hello": "world"})
        assert self.run_line(lines["GET /v2/{endpoint}/status/{id}"], ID=ended["id"])["id"] == ended["id"]
        assert self.run_line(lines["GET /healthz"]) == {"status": "alive"}

    def run_line(self, line, **variables):
        return json.loads(shell(line, JOBQ_KEY=self.server.key, **variables))

    def test_the_text_of_a_line_for_curl_is_quoted(self):
        """A quote in an example, and a `$` in the address of a proxy, stay text for the shell."""
        line = self.open_docs().evaluate("curlLine", {
            "server": "http://h/$(a)", "method": "put", "path": "/x/{a}/{b-c}/{d}", "needsKey": False,
            "parameters": [{"in": "path", "name": "a", "example": "1 '\"$"}], "body": {"a": "it's $HOME"}})
        assert shell("curl() { printf '%s\\n' \"$@\"; }\n" + line, D="e").splitlines() == [
            "-X", "PUT", "http://h/$(a)/x/1%20'%22%24/{b-c}/e", "-d", '{"a":"it\'s $HOME"}']

    def test_the_path_of_a_proxy_is_in_the_lines_for_curl(self):
        page = self.open_docs()
        page.evaluate("history.replaceState(null, '', '/a/b/docs')")
        page.evaluate(RENDER_AGAIN, self.api)
        assert page.evaluate("document.querySelector('#call-alive .curl').textContent") == f'curl "{self.server.url}/a/b/healthz"'

    def test_a_narrow_screen_has_no_horizontal_scroll(self):
        page = self.open_docs(width=360, height=640)
        assert not page.evaluate("document.getElementById('contents').open")
        for _ in range(2):
            assert page.evaluate("document.scrollingElement.scrollWidth <= document.scrollingElement.clientWidth")
            wide = page.evaluate("[...document.body.querySelectorAll('*')].filter(each => each.checkVisibility()"
                                 " && each.getBoundingClientRect().right > innerWidth).map(each => each.outerHTML.slice(0, 80))")
            assert wide == []
            self.open_all(page)

    def test_both_schemes_are_readable(self):
        page = self.open_docs()
        self.open_all(page)
        backgrounds = set()
        for scheme in ("light", "dark"):
            page.show_as(scheme=scheme)
            backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            lowest = page.evaluate(CONTRASTS)
            print(scheme, lowest)
            assert lowest[0][0] >= 4.5, lowest
        assert len(backgrounds) == 2

    def test_texts_are_marked(self, subtests):
        page = self.open_docs()
        for text, html in MARKED.items():
            with subtests.test(text):
                assert page.evaluate("text => markedText(text).map(each => each.outerHTML).join('')", text) == html

    def test_a_hostile_description_stays_text(self):
        page = self.open_docs()
        page.evaluate(RENDER_AGAIN, hostile(self.api))
        self.open_all(page)
        text = page.evaluate("byId('about').textContent + byId('groups').textContent")
        assert text.count(HOSTILE) > 500
        assert page.evaluate("document.querySelectorAll('img, main script').length") == 0
        assert page.evaluate("typeof hit") == "undefined"

    def test_the_policy_refuses_html_of_a_script(self):
        page = self.open_docs()
        assert page.evaluate("try { document.body.innerHTML = '<p>'; 'allowed' } catch (error) { error.name }") == "TypeError"
        assert any("TrustedHTML" in fault for fault in page.faults())


def shell(text, **variables):
    """Runs a text in a shell and returns the output."""
    done = subprocess.run(["sh", "-c", text], env={**os.environ, **variables}, capture_output=True, text=True, check=False,
                          timeout=HANG)
    assert done.returncode == 0, done.stderr
    return done.stdout


def hostile(part):
    """Returns a part of a description with a hostile text in each summary, description and allowed value."""
    if isinstance(part, dict):
        return {name: value + HOSTILE if name in ("summary", "description", "version", "pattern") and isinstance(value, str)
                else hostile(value) for name, value in part.items()}
    if isinstance(part, list):
        return [hostile(each) for each in part]
    return part
