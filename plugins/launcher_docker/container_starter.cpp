#include "container_starter.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <variant>

#include "image_reference.h"
#include "labels.h"

namespace jobq::docker {
namespace {

// The daemon's words differ between storage drivers: "--storage-opt is supported only for overlay over xfs with
// 'pquota' mount option", "--storage-opt is not supported for overlay". A text with a different meaning costs one more
// attempt.
bool isAboutDisk(const EngineFault& fault) {
  std::string text = fault.reason;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool isAboutStorage = text.find("storage") != text.npos && text.find("opt") != text.npos;
  return fault.status != 0 && (isAboutStorage || text.find("quota") != text.npos);
}

/// Gives the right to pull an image back.
class Pull {
 public:
  Pull(WorkerTable& table, const std::string& image) : table_(table), image_(image) {}
  ~Pull() { table_.endPull(image_); }
  Pull(const Pull&) = delete;
  Pull& operator=(const Pull&) = delete;

 private:
  WorkerTable& table_;
  const std::string& image_;
};

}  // namespace

void ContainerStarter::startWorker(const ClaimedLaunch& claimed) {
  for (Creation creation;;) {
    if (claimed.stop.stop_requested()) return failStart(claimed, {}, false);
    ContainerTerms terms = terms_;
    terms.gpus = engine_.gpuRequest();
    terms.boundsDisk = creation.boundsDisk = claimed.launch.container.diskInGb > 0 && !cannotLimitDisk_;
    const auto created =
        engine_.createContainer(containerNameOf(claimed.launch.worker), containerBody(claimed.launch, terms));
    if (const auto* container = std::get_if<std::string>(&created)) return startContainer(claimed, *container);
    if (!prepareAnotherTry(claimed, std::get<EngineFault>(created), creation)) return;
  }
}

bool ContainerStarter::prepareAnotherTry(const ClaimedLaunch& claimed, const EngineFault& fault, Creation& creation) {
  if (creation.boundsDisk && isAboutDisk(fault)) {
    noteNoDiskLimit(fault);
    return true;
  }
  if (fault.status == kNotFound && !std::exchange(creation.wasPulled, true)) return pullImage(claimed);
  failStart(claimed, fault, !fault.isWithoutEffect);
  return false;
}

void ContainerStarter::noteNoDiskLimit(const EngineFault& fault) {
  if (cannotLimitDisk_.exchange(true)) return;
  log_.write(LogLevel::warning, "launcher.disk",
             "containers are started without a bound of their disk (containerDiskInGb), because the storage driver of "
             "Docker knows none: " +
                 fault.reason + "; use overlay2 on xfs with pquota for such a bound");
}

bool ContainerStarter::pullImage(const ClaimedLaunch& claimed) {
  const ContainerSpec& container = claimed.launch.container;
  const auto image = readImageReference(container.image);
  const auto authIsWrong = authFault(auths_, container);
  if (!image || authIsWrong) {
    failStart(claimed, {0, authIsWrong.value_or("the template has a fault"), true}, false);
    return false;
  }
  const auto auth = auths_.find(container.registryAuthId);
  if (!table_.beginPull(claimed)) return false;
  const Pull pull(table_, container.image);
  const auto fault =
      engine_.pullImage(*image, auth == auths_.end() ? std::string() : auth->second.header, claimed.stop);
  if (!fault) return true;
  failStart(claimed, {fault->status, "the image " + container.image + " cannot be pulled: " + fault->reason, true},
            false);
  return false;
}

void ContainerStarter::startContainer(const ClaimedLaunch& claimed, const std::string& container) {
  if (claimed.stop.stop_requested()) return failStart(claimed, {}, true);
  if (const auto fault = engine_.startContainer(container)) return failStart(claimed, *fault, true);
  outputs_.follow(claimed.launch.worker, container);
  table_.markRunning(claimed.launch.worker, container);
}

void ContainerStarter::failStart(const ClaimedLaunch& claimed, const EngineFault& fault, bool mayHaveContainer) {
  FailedStart failed;
  failed.isFailure = !claimed.stop.stop_requested();
  failed.reason = failed.isFailure ? "it could not be started: " + fault.reason : "it was stopped before it began";
  failed.mayHaveContainer = mayHaveContainer;
  table_.endStart(claimed.launch.worker, std::move(failed));
}

}  // namespace jobq::docker
