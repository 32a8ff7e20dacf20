#include "core/cli/commands.h"

#include "core/cli/field_options.h"

namespace jobq::cli {
namespace {

OptionRow quietOption(const std::string& help) { return {kQuiet, "", help, false, "q"}; }

// The options of a command that makes an object, after those of its fields.
std::vector<OptionRow> makingOptions(std::vector<OptionRow> options) {
  options.push_back(quietOption("print the id alone"));
  return options;
}

std::vector<OptionRow> listOptions() { return {quietOption("print the ids alone")}; }

std::vector<OptionRow> pageOptions() {
  return {quietOption("print the ids alone"),
          {"status", "STATE", "only jobs that are IN_QUEUE, IN_PROGRESS, COMPLETED, FAILED, CANCELLED or TIMED_OUT"},
          {"limit", "N", "the largest number of jobs, 1 to 100; 50 when left out"},
          {"offset", "N", "skip the first N jobs"},
          {"key-id", "ID", "only jobs that the API key with this id submitted"},
          {"prefix", "TEXT", "only jobs whose id begins so"},
          {"cursor", "N", "the next page, as the end of the previous page names it"}};
}

std::vector<OptionRow> checkOptions() {
  return {{"filter", "", "run the script as an admission filter, in any folder"},
          {"set", "KEY=VALUE", "a setting of the server, like lua.memory=128MB or net.allowPrivate=true", true},
          {"plugins", "DIR", "the folder of the plugins; the one beside jobqctl when left out"}};
}

std::vector<OptionRow> scriptOptions() {
  std::vector<OptionRow> options = {
      {"input", "JSON", "the job's input; - reads it from standard input, @FILE from a file; {} when left out"},
      {"env", "NAME=VALUE", "a variable of the endpoint's environment", true},
      {"timeout", "TIME", "the job's execution timeout, like 500ms or 30s; 60s when left out"}};
  for (const OptionRow& option : checkOptions()) options.push_back(option);
  return options;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"key create",
       "NAME",
       "Make an API key and print the key, which is shown only once.",
       {{"scope", "client|submit|read|monitor|worker|admin", "what the key may do; client when left out", true},
        {"endpoint", "ID", "bind the key to this endpoint; all endpoints when left out", true},
        {"expires", "ISO", "the time when the key expires, in UTC, like 2027-01-01T00:00:00Z; never when left out"},
        quietOption("print the key alone")},
       createKey},
      {"key list", "", "List the API keys, without the keys themselves.", listOptions(), listKeys},
      {"key revoke", "ID", "Revoke a key. ID is the key's id from `key list`, not the key itself.", {}, revokeKey},
      {"me", "", "Show the key that is in use: its id, name, scopes, endpoints and expiry.", {}, showOwnKey},
      {"node list",
       "",
       "List the servers that share the storage. ANSWERS marks the server that was asked.",
       {},
       listNodes},
      {"node drain",
       "NAME",
       "Let a server run its jobs to their end and claim no others, until `node resume` or its next start.",
       {},
       drainNode},
      {"node resume", "NAME", "End the drain of a server.", {}, resumeNode},
      {"worker env",
       "ENDPOINT",
       "Print the variables of a remote worker for a shell: eval \"$(jobqctl worker env ENDPOINT)\".\n"
       "Each worker needs a name of its own. The other formats name no worker unless --worker is given: each process "
       "then makes a name, or has that of its pod.",
       {{"format", "export|env|systemd|k8s",
         "export for a shell, env for `docker run --env-file`, systemd for EnvironmentFile=, k8s for the env of a "
         "container; export when left out"},
        {"worker", "NAME", "the name of the worker; a new one when left out"},
        {"worker-key", "KEY", "the worker's API key; a new one of scope worker for this endpoint when left out"}},
       printWorkerEnvironment},
      {"worker list", "ENDPOINT", "List the workers of an endpoint.", {}, listWorkers},
      {"worker logs",
       "ENDPOINT WORKER",
       "Show the last lines that a launched worker has written, also for 10 minutes after its end.\n"
       "With --follow, show new lines until the worker's end.",
       {{"follow", "", "show new lines until the worker's end"},
        {"tail", "LINES", "the number of lines to begin with, 0 to 1000; 100 when left out"}},
       showWorkerLog},
      {"plugin list", "", "List the plugin files, what they hold, and why a file was rejected.", {}, listPlugins},
      {"plugin describe",
       "NAME",
       "Show a plugin's options and their values in force. NAME is like sqlite, or storage.sqlite where a name is used "
       "by two kinds.",
       {},
       describePlugin},
      {"template list", "", "List the templates.", listOptions(), listTemplates},
      {"template show", "ID", "Show a template with all its fields.", {}, showTemplate},
      {"template create", "", "Make a template; --name and --image are required.",
       makingOptions(optionsOf(templateOptions())), createTemplate},
      {"template update", "ID",
       "Change the fields that are given. Endpoints that use the template get a new release.\n"
       "`jobqctl release status` shows how far it has come.",
       optionsOf(templateChanges()), updateTemplate},
      {"template delete", "ID", "Delete a template that no endpoint uses.", {}, deleteTemplate},
      {"endpoint list", "", "List the endpoints: those of templates and those of the properties file.", listOptions(),
       listEndpoints},
      {"endpoint show",
       "ID",
       "Show an endpoint with all its settings. `inForce` has the values for the settings it leaves out.",
       {{"workers", "", "also each worker, with its version and state"}},
       showEndpoint},
      {"endpoint create", "",
       "Make an endpoint; --image or --template is required.\n"
       "Fields without an option, such as retention and rateLimits, are given with --file.\n"
       "Options override the fields of the file.",
       makingOptions(optionsOf(endpointOptions())), createEndpoint},
      {"endpoint update", "ID",
       "Change the settings that are given.\n"
       "Fields without an option, such as retention and rateLimits, are given with --file.\n"
       "Options override the fields of the file. --filters '' removes all filters; null in a file resets a setting.",
       optionsOf(endpointChanges()), updateEndpoint},
      {"endpoint delete", "ID", "Stop an endpoint's running jobs and delete it with all its jobs.", {}, deleteEndpoint},
      {"endpoint pause", "ID", "Keep an endpoint's jobs in the queue; running jobs continue.", {}, pauseEndpoint},
      {"endpoint resume", "ID", "End the pause of an endpoint.", {}, resumeEndpoint},
      {"release status",
       "[ENDPOINT]",
       "Show how far a release has come: complete, rolling or halted, and which workers have it.\n"
       "With --wait the exit code is 5 when the release is halted, and 6 when --timeout passes first.",
       {{"wait", "", "wait until the release is complete or halted"},
        {"timeout", "TIME", "with --wait: how long to wait, like 30s or 10m; 5m when left out"}},
       showRelease},
      {"run",
       "ENDPOINT JSON",
       "Submit a job. JSON is its `input` object; - reads it from standard input, @FILE from a file.\n"
       "With --sync the exit code is 4 when the job did not end COMPLETED.",
       {{"sync", "", "wait for the job's end and show its output"},
        {"wait", "MS", "with --sync: how long to wait, 1000 to 300000 milliseconds; 90000 when left out"},
        quietOption("print the id of the job alone")},
       runJob},
      {"job list", "ENDPOINT", "List an endpoint's jobs, the newest first.", pageOptions(), listJobs},
      {"job show", "ENDPOINT JOB", "Show a job.", {{"input", "", "show the input of the job too"}}, showJob},
      {"job stream",
       "ENDPOINT JOB",
       "Show the output of a job chunk by chunk, from its first chunk until the job's end.\n"
       "Other readers of the job lose no chunk. The exit code is 4 when the job did not end COMPLETED; its state "
       "and\n"
       "its error go to standard error.",
       {},
       streamJob},
      {"job logs",
       "ENDPOINT JOB",
       "Show the last 1,000 lines that a job's handler has logged.\n"
       "With --follow, show new lines until the job's end; the exit code is 4 when the job did not end COMPLETED.",
       {{"follow", "", "show new lines until the job's end"}},
       showLog},
      {"job cancel", "ENDPOINT JOB", "Stop a waiting or running job.", {}, cancelJob},
      {"job retry", "ENDPOINT JOB", "Put a FAILED or TIMED_OUT job at the end of the queue.", {}, retryJob},
      {"requests", "ENDPOINT", "The same as `job list`.", pageOptions(), listJobs},
      {"status", "ENDPOINT JOB", "The same as `job show`.", {{"input", "", "show the input of the job too"}}, showJob},
      {"cancel", "ENDPOINT JOB", "The same as `job cancel`.", {}, cancelJob},
      {"retry", "ENDPOINT JOB", "The same as `job retry`.", {}, retryJob},
      {"purge",
       "ENDPOINT",
       "Delete all waiting jobs, after a question. A job is then gone for all callers.",
       {{"yes", "", "ask no question"}},
       purgeQueue},
      {"health",
       "[ENDPOINT]",
       "Show the counters of jobs, workers and webhooks of an endpoint, or a table of all endpoints of the key.",
       {},
       showHealth},
      {"top",
       "[ENDPOINT]",
       "Watch the endpoints' workers and jobs, the busiest first; the key q ends the command.\n"
       "With --json each update is one object.",
       {{"interval", "TIME", "time between two updates, like 500ms or 2s; 1s when left out"},
        {"once", "", "print one table and end"}},
       showTop},
      {"lua run", "FILE",
       "Run a script in the server's own sandbox, without a server: a handler, or a filter if FILE lies in a folder "
       "filters.\n"
       "The output goes to standard output, chunks, progress and log lines to standard error. The exit code is 4 when\n"
       "the job fails or the filter refuses it.",
       scriptOptions(), runScript},
      {"lua check", "FILE",
       "Check whether the server can run a script. The exit code is 1, with the reason, when it cannot.",
       checkOptions(), checkScript},
      {"storage probe",
       "",
       "Check the storage of a settings file as a start of the server does, without a server.\n"
       "A database server is asked for its version, its settings and its locks, and keeps no trace.\n"
       "The exit code is 1 when a server would refuse to start.",
       {{"config", "FILE", "the settings file of the server; etc/jobq.properties when left out"},
        {"set", "KEY=VALUE", "a setting that overrides the file", true}},
       probeStorage},
      {"launcher probe",
       "",
       "Check the launcher of a settings file without a server: whether Docker answers, for example.\n"
       "The exit code is 1 when no worker could be started.",
       {{"config", "FILE", "the settings file of the server; etc/jobq.properties when left out"},
        {"set", "KEY=VALUE", "a setting that overrides the file", true}},
       probeLauncher},
      {"backup",
       "DIR",
       "Copy the running server's storage into DIR/jobq.db, which a server can start on.\n"
       "The copy shows one moment and holds every job acknowledged before the command. DIR is made if it is\n"
       "missing, and must not hold a jobq.db. Not in the copy: secret.key (which opens all sealed values) "
       "and\n"
       "the properties file. The exit code is 1 when another backup runs or the storage cannot be copied.",
       {{"timeout", "TIME", "how long the server may take to write the copy, 1s to 24h; 1h when left out"}},
       makeBackup},
      {"webhook list",
       "",
       "List webhooks and their outcomes; one of --job, --endpoint and --state is required.",
       {{"job", "ID", "webhooks of this job"},
        {"endpoint", "ID", "webhooks of this endpoint, the newest first"},
        {"state", "STATE", "webhooks that are owed, delivered or abandoned"},
        {"limit", "N", "the largest number of webhooks, 1 to 1000; 100 when left out"}},
       listWebhooks},
      {"webhook replay", "ID", "Send a webhook again. ID is the webhook's id from `webhook list`.", {}, replayWebhook},
      {"completion",
       "SHELL",
       "Print a script that completes commands and options in bash, zsh or fish.\n"
       "bash: source <(jobqctl completion bash)    zsh: source <(jobqctl completion zsh)    fish: jobqctl completion "
       "fish | source",
       {},
       printCompletion},
  };
  return kCommands;
}

const std::vector<OptionRow>& commonOptions() {
  static const std::vector<OptionRow> kOptions = {
      {"url", "URL", "the server's address; else JOBQ_URL, else http://127.0.0.1:8000"},
      {"ca", "FILE", "a PEM file with the authorities of an https server; else JOBQ_CA, else the system's"},
      {"key", "KEY", "the API key; better in JOBQ_KEY, which other users of the machine cannot see"},
      {"json", "", "print the server's answer unchanged, for programs"},
      {"help", "", "show this text"},
  };
  return kOptions;
}

}  // namespace jobq::cli
