#include "container_body.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "image_reference.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"
#include "labels.h"

namespace jobq::docker {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

// Returns a port such as 8888/tcp for 8888/http, as Docker names ports, or no value for anything else.
std::optional<std::string> dockerPort(std::string_view port) {
  constexpr int kLastPort = 65'535;
  const std::size_t slash = port.find('/');
  if (slash == port.npos) return std::nullopt;
  const std::string_view digits = port.substr(0, slash);
  const std::string_view protocol = port.substr(slash + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 1 || number > kLastPort) {
    return std::nullopt;
  }
  if (protocol != "http" && protocol != "tcp" && protocol != "udp") return std::nullopt;
  return std::to_string(number) + (protocol == "udp" ? "/udp" : "/tcp");
}

// Without duplicates: 80/http and 80/tcp are one port.
std::set<std::string> portsOf(const ContainerSpec& container) {
  std::set<std::string> ports;
  for (const std::string& port : container.ports) ports.insert(dockerPort(port).value_or(""));
  ports.erase("");
  return ports;
}

void writePorts(json::ObjectWriter& host, const std::set<std::string>& ports) {
  host.object("PortBindings", [&ports](json::ObjectWriter& out) {
    for (const std::string& port : ports) {
      // The port of the machine is any free port.
      out.namedRaw(port, R"([{"HostIp":")" + std::string(kLoopback) + R"(","HostPort":""}])");
    }
  });
}

void writeVolume(json::ObjectWriter& host, const WorkerLaunch& launch, const ContainerTerms& terms) {
  host.array("Mounts", [&](json::ArrayWriter& mounts) {
    mounts.object([&](json::ObjectWriter& mount) {
      mount.member("Type", "volume");
      mount.member("Source", volumeNameOf(terms.server, launch.endpoint));
      mount.member("Target", launch.container.volumeMountPath);
    });
  });
}

/// Returns the name of a GPU in the Container Device Interface, such as nvidia.com/gpu=0.
std::string cdiNameOf(const std::string& gpu) { return gpu.find('=') == gpu.npos ? "nvidia.com/gpu=" + gpu : gpu; }

void writeGpus(json::ObjectWriter& host, const WorkerLaunch& launch, GpuRequest support) {
  const bool hasNames = !launch.gpus.empty();
  if (launch.gpuCount == 0 || (!hasNames && support != GpuRequest::byCount)) return;
  const bool isCdi =
      support == GpuRequest::byCdiName || (hasNames && launch.gpus.front().find('=') != std::string::npos);
  host.array("DeviceRequests", [&](json::ArrayWriter& requests) {
    requests.object([&](json::ObjectWriter& request) {
      request.member("Driver", isCdi ? "cdi" : "");
      if (hasNames) {
        request.array("DeviceIDs", [&](json::ArrayWriter& ids) {
          for (const std::string& gpu : launch.gpus) ids.element(isCdi ? cdiNameOf(gpu) : gpu);
        });
      } else {
        request.member("Count", launch.gpuCount);
      }
      request.raw("Capabilities", R"([["gpu"]])");
    });
  });
}

void writeBounds(json::ObjectWriter& host, const ContainerTerms& terms) {
  if (terms.shm > 0) host.member("ShmSize", terms.shm);
  if (terms.memory > 0) host.member("Memory", terms.memory);
  if (terms.pids > 0) host.member("PidsLimit", terms.pids);
}

void writeHost(json::ObjectWriter& host, const WorkerLaunch& launch, const ContainerTerms& terms) {
  const ContainerSpec& container = launch.container;
  host.member("Init", true);
  if (!terms.network.empty()) host.member("NetworkMode", terms.network);
  // A container with the network of another container must not have names of hosts: Docker refuses such names.
  if (!terms.network.starts_with("container:")) {
    host.raw("ExtraHosts", R"(["host.docker.internal:host-gateway"])");
  }
  if (container.diskInGb > 0 && terms.boundsDisk) {
    host.object("StorageOpt", [&container](json::ObjectWriter& options) {
      options.member("size", std::to_string(container.diskInGb) + "G");
    });
  }
  writeBounds(host, terms);
  writeGpus(host, launch, terms.gpus);
  if (container.volumeInGb > 0) writeVolume(host, launch, terms);
  if (!container.ports.empty()) writePorts(host, portsOf(container));
}

}  // namespace

std::optional<std::string> faultOf(const ContainerSpec& container) {
  if (container.image.empty()) return "imageName is empty: name an image, such as registry.example/worker:1.0.";
  if (!readImageReference(container.image)) {
    return "imageName is no name of an image: write it like registry.example/worker:1.0, with small letters, digits, "
           "'.', '_' and '-' before the tag.";
  }
  for (const std::string& port : container.ports) {
    if (!dockerPort(port)) return "ports has " + json::quoted(port) + ": write ports like 8888/http or 22/tcp.";
  }
  if (container.volumeInGb > 0 && (container.volumeMountPath.size() < 2 || container.volumeMountPath.front() != '/')) {
    return "volumeMountPath is no folder for a volume: write an absolute path such as /workspace, or set volumeInGb to "
           "0.";
  }
  return std::nullopt;
}

std::string containerBody(const WorkerLaunch& launch, const ContainerTerms& terms) {
  const ContainerSpec& container = launch.container;
  return json::object([&](json::ObjectWriter& out) {
    out.member("Image", container.image);
    if (!container.entrypoint.empty()) out.member("Entrypoint", container.entrypoint);
    if (!container.command.empty()) out.member("Cmd", container.command);
    out.array("Env", [&launch](json::ArrayWriter& env) {
      for (const auto& [name, value] : launch.env) env.element(name + "=" + value);
    });
    out.object("Labels", [&](json::ObjectWriter& labels) {
      labels.namedMember(kServerLabel, terms.server);
      labels.namedMember(kWorkerLabel, launch.worker);
      labels.namedMember(kEndpointLabel, launch.endpoint);
    });
    if (!container.ports.empty()) {
      out.object("ExposedPorts", [&container](json::ObjectWriter& ports) {
        for (const std::string& port : portsOf(container)) ports.namedRaw(port, "{}");
      });
    }
    out.object("HostConfig", [&](json::ObjectWriter& host) { writeHost(host, launch, terms); });
  });
}

std::string volumeNameOf(std::string_view server, std::string_view endpoint) {
  return "jobq-" + std::string(server) + "-" + std::string(endpoint);
}

}  // namespace jobq::docker
