#include "core/config/log_events.h"

namespace jobq {
namespace {

constexpr std::string_view kCheckStorage = "Check the storage.";
constexpr std::string_view kReport = "Report the line.";
constexpr std::string_view kNoAction = "Nothing.";

constexpr LogEvent kErrors[] = {
    {"call-timer, clock, heap, lease-fence", "A periodic service failed once and repeats.", kReport},
    {"changes.storage, lease-beats, lease-runs, remote-news", "The shared storage did not answer; the node asks again.",
     "Check the storage and the network."},
    {"deadlines, dispatcher.storage, launches, remote-workers, sweeper, webhook.dispatch",
     "A service failed once and repeats.", kCheckStorage},
    {"dispatcher.memory, webhook.thread", "Memory or a thread was lacking.", "Free memory, or lower `workersMax`."},
    {"drain.release", "Jobs could not go back to the queue at a shutdown and count as lost.", kCheckStorage},
    {"endpoints.damaged", "A stored endpoint or template cannot be read.", "Restore a backup, or create it again."},
    {"http.certificate", "SIGHUP read no valid certificate or key; the old pair stays in use.", "Correct the files."},
    {"http.connection", "A connection could not be accepted or served.", "Check descriptors and memory."},
    {"http.fault", "A call was answered with 500; the line has the request id.",
     "Correct a named filter, or report the line."},
    {"job.unfinished, job.unreported, remote.storage, webhook.storage",
     "A result or a report cannot be stored yet; the server tries again.", kCheckStorage},
    {"job.unstored", "A run was stopped because the job could not be stored.", kCheckStorage},
    {"keys.damaged", "A stored API key cannot be read and is refused.", "Revoke the key and make another."},
    {"launcher.docker.launcher.failed", "A check of the containers failed and is repeated.", kReport},
    {"log.lost", "Standard error did not take the named number of lines.",
     "Let a program read standard error, and give its disk space."},
    {"node.fenced", "The node had no contact with the shared storage and runs no jobs.",
     "Check storage, network, and `node.name` of other servers."},
    {"release.halted", "The new version of an endpoint does not start; the old version stays in use.",
     "Change the template; `worker.failed` has the reason."},
    {"server.stopped", "The process ended although a handler ignored its stop token.", "Correct the handler."},
    {"server.stuck", "The process ended although a webhook transport did not stop; no delivery is lost.", kReport},
    {"storage.sqlite.storage.body", "The input of a job cannot be read from the named file.",
     "See `etc/operation.md`, Disk faults."},
    {"storage.sqlite.storage.failed", "The storage refuses writes until a restart.",
     "See `etc/operation.md`, Disk faults."},
    {"webhook.failed", "A delivery failed unexpectedly and is due again within a minute.",
     "Check the storage and the memory."},
    {"worker.failed", "A worker could not start, or a launched worker failed.", "Read the reason in the line."},
    {"worker.state", "A report did not fit the state of its worker and was ignored.", kReport},
    {"worker.stuck", "A handler ignores its stop token and keeps its thread.", "Correct the handler, then restart."},
};

constexpr LogEvent kWarnings[] = {
    {"clock.differs", "The machine's time differs from the server's clock by a minute.", "Correct the machine's time."},
    {"data.modes", "Files of `data.dir` were open to other users; the server closed the access.", "Find the cause."},
    {"endpoints.refresh, keys.reload", "Changed endpoints or keys could not be read yet.", kCheckStorage},
    {"filter.lua.script.faulty, handler.lua.script.faulty", "An edited script does not run; the old text stays in use.",
     "Correct the script."},
    {"http.acceptPaused", "Descriptors or memory are lacking for new connections.",
     "Raise `ulimit -n`, or free memory."},
    {"http.addressLimit", "A client address has reached `server.connectionsPerAddress`.",
     "Look for a leak in the client, or raise the setting for a proxy."},
    {"job.lost", "A job was running when the server crashed.", "Suspect the handler of a job that recurs."},
    {"keys.bootstrap", "No admin key is valid for ever, or `admin.key` has no key of this server.",
     "Make a key, or run `jobqd --reset-admin-key`."},
    {"keys.lastUse", "The last use of a key could not be stored.", kCheckStorage},
    {"launcher.docker.launcher.disk", "Docker's storage driver has no sizes, so `containerDiskInGb` is not a bound.",
     "For a bound use overlay2 on xfs with pquota."},
    {"launcher.docker.launcher.leftover", "A container of an ended worker cannot be removed.",
     "Run `docker rm --force` with its id."},
    {"launcher.docker.launcher.unreachable", "Docker does not answer, so no worker starts.",
     "Start Docker, and let the server's user open its socket."},
    {"launcher.process.launcher.log", "The output of a worker cannot be written to `workers` in `data.dir`.",
     "Give the server space and write access."},
    {"net.allowPrivate", "Private addresses are open on a reachable host.", "Set `net.allowPrivate = false`."},
    {"node.leave", "A stopped node could not return jobs; other nodes take them 15 s later.", kNoAction},
    {"plugin.path", "A folder of `plugins.path` cannot be read.", "Correct the setting."},
    {"plugin.rejected", "A library was not loaded for the named reason.", "Build the plugin again."},
    {"remote.lost", "A remote worker lost a job, which runs again or is FAILED.",
     "Read the worker's log; check for a shared id."},
    {"remote.news", "The record of a stopped node stays until another node removes it.", kNoAction},
    {"remote.sharedId", "Two processes share a worker id.", "Give each process a separate id (`etc/workers.md`)."},
    {"storage.mysql.storage.binlog, storage.mysql.storage.durability",
     "A power cut of the database server may lose acknowledged jobs.",
     "Set `sync_binlog` and `innodb_flush_log_at_trx_commit` to 1."},
    {"storage.mysql.storage.clock", "The clocks of database server and host differ by 2 s, or one was set.",
     "Let NTP set both clocks."},
    {"storage.mysql.storage.server", "The connections reach another database server than before.",
     "Nothing after a planned switch or a failover."},
    {"storage.sqlite.storage.clock", "No service sets the host's clock, so expired jobs stay for the named time.",
     "Run `chrony`; set a wrong clock while the server is stopped."},
    {"storage.wait", "The storage cannot be reached at the start, which is repeated.",
     "Start the database server, or correct the address."},
    {"webhook.abandoned", "A webhook was given up, for example after all tries.",
     "Check the receiver, then run `jobqctl webhook replay`."},
    {"webhook.lacking", "A descriptor or memory was lacking for a delivery, repeated after a second.",
     "Raise `ulimit -n`, or free memory."},
    {"webhook.reschedule", "A delivery could not be postponed and is due again within a minute.", kCheckStorage},
};

constexpr LogEvent kInformation[] = {
    {"filter.lua.filter.print", "A filter printed the line.", {}},
    {"filter.lua.script.reloaded, handler.lua.script.reloaded", "An edited script is in use.", {}},
    {"http.certificate", "New connections use the new certificate.", {}},
    {"http.cut", "Requests beyond `server.drain` are cut off.", {}},
    {"http.listening", "The server listens at the named address.", {}},
    {"job.stale", "A late result was dropped.", {}},
    {"keys.bootstrap", "The admin key is in the named file.", {}},
    {"launcher.docker.launcher.reachable", "Docker answers again.", {}},
    {"node.drainEnded, node.resumed", "The node claims jobs again, after a drain or a fence.", {}},
    {"node.drains", "The node is drained and claims no further jobs.", {}},
    {"server.stopped", "The server has ended, and all accepted jobs are stored.", {}},
    {"server.stopping", "The shutdown has begun.", {}},
    {"start.expired", "The server removes expired jobs.", {}},
    {"storage.mysql.storage.migrate, storage.sqlite.storage.migrate", "The schema is changed to this version.", {}},
    {"storage.sqlite.storage.space", "The file of an older server cannot shrink; a restored backup can.", {}},
    {"worker.ended", "A launched worker has ended.", {}},
};

constexpr LogEvent kDebug[] = {
    {"http.broken", "An answer could not be sent to its end.", {}},
    {"server.descriptors", "The server may have the named number of descriptors.", {}},
};

constexpr LogEvent kWorkerErrors[] = {
    {"report.refused", "The server refuses a report of a job for ever.", kReport},
};

constexpr LogEvent kWorkerWarnings[] = {
    {"handler.killed", "A handler did not stop within 5 s, and its process was killed.",
     "Let the handler check its stop token."},
    {"handler.lost", "The process of a handler died or sent a malformed message; the job is lost.",
     "Correct the handler."},
    {"handler.restart", "The process of a handler died without a job or cannot start, and is replaced.",
     "Read the reason in the line."},
    {"job.again", "The server handed out a running job again; the run continues.", kNoAction},
    {"server.failing", "Calls to the server fail and are repeated.", "Check the server and the network."},
    {"worker.abandoned", "Jobs did not end within `--drain`; other workers get them.",
     "Raise `--drain` to avoid second runs."},
};

constexpr LogEvent kWorkerInformation[] = {
    {"server.answering", "Calls to the server succeed again.", {}},
    {"worker.started", "The worker takes the jobs of the named endpoint.", {}},
    {"worker.stopping", "The shutdown has begun.", {}},
};

constexpr LogEventSection kSections[] = {
    {"Errors", LogLevel::error, kErrors},
    {"Warnings", LogLevel::warning, kWarnings},
    {"Information", LogLevel::information, kInformation},
    {"Debug", LogLevel::debug, kDebug},
    {"Errors of jobq-worker", LogLevel::error, kWorkerErrors},
    {"Warnings of jobq-worker", LogLevel::warning, kWorkerWarnings},
    {"Information of jobq-worker", LogLevel::information, kWorkerInformation},
};

constexpr std::string_view kHead =
    "# Events of the log\n\n"
    "The events of a plugin begin with the kind and name of the plugin, such as\n"
    "`storage.sqlite`. `jobq-worker` also logs events of plugins and `log.lost`. `jobqd --events` prints the page.\n";

// Returns the names as code, each for itself.
std::string codes(std::string_view names) {
  constexpr std::string_view kBetween = ", ";
  std::string text = "`";
  for (auto end = names.find(kBetween); end != names.npos; end = names.find(kBetween)) {
    text += std::string(names.substr(0, end)) + "`, `";
    names.remove_prefix(end + kBetween.size());
  }
  return text + std::string(names) + "`";
}

std::string table(const LogEventSection& section) {
  std::string text = "| event | meaning | what to do |\n|---|---|---|\n";
  for (const LogEvent& event : section.events) {
    text += "| " + codes(event.names) + " | " + std::string(event.meaning) + " | " + std::string(event.action) + " |\n";
  }
  return text;
}

std::string list(const LogEventSection& section) {
  std::string text;
  for (const LogEvent& event : section.events)
    text += "- " + codes(event.names) + ": " + std::string(event.meaning) + "\n";
  return text;
}

}  // namespace

std::span<const LogEventSection> logEventSections() { return kSections; }

std::string logEventsPage() {
  std::string page(kHead);
  for (const LogEventSection& section : logEventSections()) {
    const bool hasActions = section.level >= LogLevel::warning;
    page += "\n## " + std::string(section.title) + "\n" + (hasActions ? table(section) : list(section));
  }
  return page;
}

}  // namespace jobq
