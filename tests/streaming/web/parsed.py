"""A page, parsed."""

from __future__ import annotations

from html.parser import HTMLParser

import requests

VOID = {"meta", "link", "input", "img", "br"}


class Parsed(HTMLParser):
    """Elements with their attributes, the text, and what was not closed."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self.ids, self._open = [], "", [], []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data

    @property
    def words(self):
        return " ".join(self.text.split())

    def tags(self, name):
        return [attributes for tag, attributes in self.elements if tag == name]


def get(page, path):
    answer = requests.get(page + path, timeout=10)
    assert answer.status_code == 200, answer.text
    return Parsed(answer.text)
