"""A stream of events of a server (core/http/API.md, "Event streams"), read event by event."""

import json

EVENTS = {"Accept": "text/event-stream"}


class EventReader:
    """An open stream of events of a server."""

    def __init__(self, server, path, method="GET", **headers):
        self.connection = server.connect()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, headers={"Authorization": "Bearer " + server.key, **EVENTS, **named})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def next(self):
        """The next event as (name, id, value of its data), or None at the end of the answer."""
        name, number, data = "message", None, []
        while line := self.answer.readline():
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "id":
                number = value
            elif field == "data":
                data.append(value)
            elif not field and data:
                return name, number, json.loads("\n".join(data))
        assert not data, "the answer ends inside an event"
        return None

    def read_rest(self):
        """All further events."""
        events = []
        while event := self.next():
            events.append(event)
        self.close()
        return events

    def close(self):
        # The answer holds the socket, too.
        self.answer.close()
        self.connection.close()
