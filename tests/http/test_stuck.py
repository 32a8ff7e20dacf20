"""A handler that ignores its stop token: the one thread that the server cannot end."""

from http_case import HttpTest


class StuckTest(HttpTest):
    def test_shutdown_is_bounded_and_the_job_goes_back_to_the_queue(self, own_server):
        """core/decisions/workers.md; core/decisions/operations.md: past the grace the thread is abandoned, the process
        ends by itself; a job not finished within the drain goes back into the queue, and a drain is no loss."""
        server = own_server(**{"server.drain": "100ms", "endpoint.trial.stopGrace": "100ms"})
        job = server.run_ignoring_stop("trial")
        server.terminate()
        assert server.ended() == 0
        server.settings["endpoint.trial.workersMax"] = "0"
        server.write_file()
        server.start()
        answer = server.status("trial", job)
        assert answer["status"] == "IN_QUEUE"
        assert "retries" not in answer
