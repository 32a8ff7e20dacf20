// Plugin `launcher_docker`: workers as containers. Reading order: `docker_launcher.h` (threads), `worker_table.h` (the
// states of a worker), `container_starter.h` and `container_watcher.h` (begin and end of a container), `engine.h` (the
// calls of Docker), `docker_socket.h` (one call).
#include "docker_launcher.h"
#include "jobq/abi.h"
#include "jobq/worker_launcher.h"

constexpr jobq::abi::Entry kEntries[] = {
    jobq::abi::entry<jobq::WorkerLauncher, jobq::docker::DockerLauncher>("docker", "1.0.0")};
JOBQ_PLUGIN(kEntries)
