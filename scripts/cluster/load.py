"""A small load on the nodes of a cluster: jobs of the endpoint `echo` through the load balancer."""
import http.client
import threading

import nodes

THREADS = 4
PAUSE = 0.04  # seconds between two calls of a thread


class Load:
    """Threads for submitting jobs and waiting for the results, until stop(). The counts include the calls of this
    object only."""

    def __init__(self, port, key):
        self.port, self.key = port, key
        self.done = self.refused = 0
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(number,)) for number in range(THREADS)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(2 * nodes.LONGEST_CALL)

    def _work(self, number):
        count = 0
        while not self.over.wait(PAUSE):
            count += 1
            try:
                status, answer = nodes.call(self.port, "POST", "/v2/echo/runsync", self.key,
                                            {"input": {"thread": number, "count": count}})
                done = status == 200 and answer.get("status") == "COMPLETED"
            except (OSError, ValueError, http.client.HTTPException):
                done = False
            with self.lock:
                self.done += done
                self.refused += not done
