// The parts of launcher_docker that make no call: names of images, bodies, frames of logs, answers, reasons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "container_body.h"
#include "container_end.h"
#include "docker_socket.h"
#include "engine_text.h"
#include "image_reference.h"
#include "jobq/error.h"
#include "jobq/json.h"
#include "jobq/worker_launcher.h"
#include "log_frames.h"
#include "pull_messages.h"
#include "registry_auths.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"

namespace jobq::docker {
namespace {

using namespace std::string_literals;

const std::string kHash(64, 'a');

std::string partsOf(std::string_view text) {
  const auto image = readImageReference(text);
  return image ? image->name + "|" + image->tag + "|" + image->digest : "none";
}

TEST(ImageReferenceTest, HasAName) {
  EXPECT_EQ(partsOf("worker"), "worker||");
  EXPECT_EQ(partsOf("team/worker"), "team/worker||");
  EXPECT_EQ(partsOf("registry.example/team/a__b/c-d.e"), "registry.example/team/a__b/c-d.e||");
  EXPECT_EQ(partsOf("localhost/worker"), "localhost/worker||");
  EXPECT_EQ(partsOf("127.0.0.1:5000/worker"), "127.0.0.1:5000/worker||");
}

TEST(ImageReferenceTest, HasATagOrADigest) {
  EXPECT_EQ(partsOf("worker:1.0"), "worker|1.0|");
  EXPECT_EQ(partsOf("localhost:5000/worker:A_b-c.9"), "localhost:5000/worker|A_b-c.9|");
  EXPECT_EQ(partsOf("worker@sha256:" + kHash), "worker||sha256:" + kHash);
  EXPECT_EQ(partsOf("r.example:1/w:2@sha256:" + kHash), "r.example:1/w|2|sha256:" + kHash);
}

TEST(RegistryAuthTest, ARegistryHasOneName) {
  for (const char* image : {"worker", "team/worker:1", "docker.io/team/worker", "index.docker.io/team/worker"}) {
    EXPECT_EQ(registryOfImage(image), "docker.io") << image;
  }
  EXPECT_EQ(registryOfImage("localhost/worker"), "localhost");
  EXPECT_EQ(registryOfImage("R.example:5000/team/worker:1"), "r.example:5000");
  for (const char* server :
       {"https://index.docker.io/v1/", "docker.io", "registry-1.docker.io", "registry.hub.docker.com"}) {
    EXPECT_EQ(registryOfServer(server), "docker.io") << server;
  }
  EXPECT_EQ(registryOfServer("https://R.example:5000/v2"), "r.example:5000");
}

// A template without credentials has the empty name, and would send them to the registry of any image.
TEST(RegistryAuthTest, CredentialsHaveAName) {
  const testkit::TemporaryFolder folder;
  const auto read = [&](const std::string& name) {
    const std::filesystem::path file = folder / "auths.json";
    std::ofstream(file) << "{\"" << name << R"(": {"server": "r.example", "user": "me", "password": "hunter2"}})";
    std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return readRegistryAuths(file);
  };
  EXPECT_EQ(read("mine").at("mine").registry, "r.example");
  EXPECT_THAT(testkit::thrownText<ConfigError>([&] { return read(""); }),
              testing::AllOf(testing::HasSubstr("must have a name for each credentials"),
                             testing::Not(testing::HasSubstr("hunter2"))));
}

TEST(ImageReferenceTest, InvalidReferencesAreRefused) {
  for (const std::string& text : {""s,
                                  " "s,
                                  "Worker"s,
                                  "a b"s,
                                  "/a"s,
                                  "a/"s,
                                  "a//b"s,
                                  ":1"s,
                                  "a:"s,
                                  "a:-1"s,
                                  "a:b c"s,
                                  "a@"s,
                                  "a@sha256:1"s,
                                  "a@sha256"s,
                                  "a..b"s,
                                  "a___b"s,
                                  "-a"s,
                                  "a-"s,
                                  "a/B"s,
                                  "host:port/a"s,
                                  ".example/a"s,
                                  "a?b"s,
                                  "a\n"s,
                                  "https://r.example/a"s,
                                  std::string(300, 'a'),
                                  "a:" + std::string(129, 't')}) {
    EXPECT_EQ(partsOf(text), "none") << text;
  }
}

TEST(ImageReferenceTest, APullAsksForOneVersion) {
  EXPECT_EQ(versionOf({"a", "", ""}), "latest");
  EXPECT_EQ(versionOf({"a", "1", ""}), "1");
  EXPECT_EQ(versionOf({"a", "1", "sha256:x"}), "sha256:x");
}

WorkerLaunch launchOf(ContainerSpec container) { return {"w-1", "ep", std::move(container), {{"KEY", "a\"=b"}}}; }

ContainerSpec imageAlone() {
  ContainerSpec container;
  container.image = "worker:1";
  return container;
}

TEST(ContainerBodyTest, HasOnlyTheGivenFields) {
  EXPECT_EQ(containerBody(launchOf(imageAlone()), {"s1", "", true}),
            R"({"Image":"worker:1","Env":["KEY=a\"=b"],)"
            R"("Labels":{"jobq.server":"s1","jobq.worker":"w-1","jobq.endpoint":"ep"},)"
            R"("HostConfig":{"Init":true,"ExtraHosts":["host.docker.internal:host-gateway"]}})");
}

TEST(ContainerBodyTest, HasAllFieldsOfATemplate) {
  ContainerSpec container = imageAlone();
  container.entrypoint = {"python", "-u"};
  container.command = {"handler.py"};
  container.ports = {"80/http", "80/tcp", "22/tcp"};
  container.diskInGb = 50;
  container.volumeInGb = 20;
  container.volumeMountPath = "/workspace";
  const std::string body = containerBody(launchOf(container), {"s1", "host", true});
  ASSERT_TRUE(json::valid(body)) << body;
  for (const char* const part : {
           R"("Entrypoint":["python","-u"],"Cmd":["handler.py"])",
           R"("ExposedPorts":{"22/tcp":{},"80/tcp":{}})",
           R"("NetworkMode":"host")",
           R"("StorageOpt":{"size":"50G"})",
           R"("Mounts":[{"Type":"volume","Source":"jobq-s1-ep","Target":"/workspace"}])",
           R"("22/tcp":[{"HostIp":"127.0.0.1","HostPort":""}])",
       }) {
    EXPECT_NE(body.find(part), body.npos) << body;
  }
}

TEST(ContainerBodyTest, LeavesOutTheDiskIfTheDriverKnowsNoSize) {
  ContainerSpec container = imageAlone();
  container.diskInGb = 50;
  EXPECT_EQ(containerBody(launchOf(container), {"s1", "", false}).find("StorageOpt"), std::string::npos);
}

TEST(ContainerBodyTest, AddsNoHostToTheNetworkOfAContainer) {
  const std::string body = containerBody(launchOf(imageAlone()), {"s1", "container:proxy", true});
  EXPECT_EQ(body.find("ExtraHosts"), std::string::npos) << body;
}

TEST(ContainerBodyTest, HasTheBoundsOfTheSettings) {
  const ContainerTerms terms{.server = "s1", .network = "", .shm = 1UL << 30, .memory = 1UL << 34, .pids = 512};
  EXPECT_THAT(containerBody(launchOf(imageAlone()), terms),
              testing::HasSubstr(R"("ShmSize":1073741824,"Memory":17179869184,"PidsLimit":512)"));
}

TEST(ContainerBodyTest, HasTheGpusOfTheWorker) {
  const auto body = [](GpuRequest support, std::uint32_t count, std::vector<std::string> gpus) {
    WorkerLaunch launch = launchOf(imageAlone());
    launch.gpuCount = count;
    launch.gpus = std::move(gpus);
    return containerBody(launch, {.server = "s1", .network = "", .gpus = support});
  };
  const auto hasGpus = [](const std::string& driver, const std::string& which) {
    return testing::HasSubstr(R"("DeviceRequests":[{"Driver":")" + driver + "\"," + which +
                              R"(,"Capabilities":[["gpu"]]}])");
  };
  const auto hasNone = testing::Not(testing::HasSubstr("DeviceRequests"));
  for (const GpuRequest docker : {GpuRequest::byId, GpuRequest::byCount}) {
    EXPECT_THAT(body(docker, 2, {"0", "GPU-5a"}), hasGpus("", R"("DeviceIDs":["0","GPU-5a"])"));
    EXPECT_THAT(body(docker, 1, {"amd.com/gpu=1"}), hasGpus("cdi", R"("DeviceIDs":["amd.com/gpu=1"])"));
    EXPECT_THAT(body(docker, 0, {}), hasNone);
  }
  EXPECT_THAT(body(GpuRequest::byCount, 2, {}), hasGpus("", R"("Count":2)")) << "the daemon chooses the GPUs";
  EXPECT_THAT(body(GpuRequest::byId, 2, {}), hasNone) << "Docker without the runtime would refuse the container";
  EXPECT_THAT(body(GpuRequest::byCdiName, 1, {"0"}), hasGpus("cdi", R"("DeviceIDs":["nvidia.com/gpu=0"])"));
  EXPECT_THAT(body(GpuRequest::byCdiName, 1, {}), hasNone);
}

TEST(ContainerBodyTest, AFaultNamesTheField) {
  EXPECT_EQ(faultOf(imageAlone()), std::nullopt);
  ContainerSpec container = imageAlone();
  container.image = "No Image";
  EXPECT_EQ(faultOf(container).value_or("").find("imageName"), 0U);
  for (const char* const port : {"", "80", "0/tcp", "65536/tcp", "80/", "80/sctp", "x/tcp", "8 0/tcp"}) {
    container = imageAlone();
    container.ports = {port};
    EXPECT_EQ(faultOf(container).value_or("").find("ports"), 0U) << port;
  }
  container = imageAlone();
  container.volumeInGb = 1;
  for (const char* const path : {"", "/", "workspace"}) {
    container.volumeMountPath = path;
    EXPECT_EQ(faultOf(container).value_or("").find("volumeMountPath"), 0U) << path;
  }
}

std::string frame(const std::string& text) {
  return "\x01\x00\x00\x00\x00\x00\x00"s + static_cast<char>(text.size()) + text;
}

TEST(LogFramesTest, GiveTheirTexts) {
  EXPECT_EQ(textOfFrames(""), "");
  EXPECT_EQ(textOfFrames(frame("one\n") + frame("") + frame("two")), "one\ntwo");
  EXPECT_EQ(textOfFrames(frame("one\n") + frame("two").substr(0, 9)), "one\nt");
  EXPECT_EQ(textOfFrames(frame("one\n") + "\x01\x00\x00"s), "one\n");
  EXPECT_EQ(textOfFrames("\x02\x00\x00\x00\xff\xff\xff\xffrest"s), "rest");
}

TEST(LogFramesTest, TheLastLineIsNotBlank) {
  EXPECT_EQ(lastLineOf(""), "");
  EXPECT_EQ(lastLineOf("\n \r\n"), "");
  EXPECT_EQ(lastLineOf("one\ntwo"), "two");
  EXPECT_EQ(lastLineOf("one\r\n  two\r\n\r\n"), "two");
  EXPECT_EQ(lastLineOf("10 %\r20 %\r"), "20 %");
}

TEST(LogFramesTest, AClauseIsShortAndHasNoControlCharacters) {
  EXPECT_EQ(asClause("a\x1b[1mb\x7f\nc "), "a [1mb  c");
  const std::string cut = asClause(std::string(kLongestClause - 1, 'x') + "\xc3\xa4");
  EXPECT_EQ(cut, std::string(kLongestClause - 1, 'x'));
}

std::optional<std::string> errorOf(const std::vector<std::string>& pieces) {
  PullMessages messages;
  for (const std::string& piece : pieces) EXPECT_TRUE(messages.addPiece(piece));
  messages.finish();
  return messages.error();
}

TEST(PullMessagesTest, TheFirstErrorCounts) {
  EXPECT_EQ(errorOf({}), std::nullopt);
  EXPECT_EQ(errorOf({"{\"status\":\"error\"}\r\n", "no JSON\n"}), std::nullopt);
  EXPECT_EQ(errorOf({"{\"status\":\"a\"}\r\n{\"err", "or\":\"no\\nspace\"}\r\n{\"error\":\"two\"}"}), "no space");
  EXPECT_EQ(errorOf({R"({"error":"at the end"})"}), "at the end");
  EXPECT_EQ(errorOf({R"({"error":7})"}), "Docker gave no reason");
}

TEST(PullMessagesTest, ALineIsBounded) {
  const std::string piece(64 * 1024, 'x');
  EXPECT_EQ(errorOf({piece, piece, "\n{\"error\":\"after\"}\n"}), "after");
}

TEST(FrameReaderTest, ReadsFramesInPieces) {
  const std::string frames = "\1\0\0\0\0\0\0\3one\2\0\0\0\0\0\0\2\n2\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1!"s;
  for (std::size_t size = 1; size <= frames.size(); ++size) {
    FrameReader reader;
    std::string text;
    for (std::size_t at = 0; at < frames.size(); at += size)
      text += reader.read(std::string_view(frames).substr(at, size));
    EXPECT_EQ(text, "one\n2!") << size;
  }
}

TEST(EngineTextTest, ReadsAnswers) {
  EXPECT_EQ(readVersion(R"({"Version":"29.0","ApiVersion":"1.52","MinAPIVersion":"1.44"})").leastApi, "1.44");
  EXPECT_FALSE(readVersion(R"({"ApiVersion":"1.47","Components":[{"Name":"Engine"}]})").isPodman);
  EXPECT_TRUE(
      readVersion(R"({"ApiVersion":"1.41","Components":[{"Name":"Podman Engine"},{"Name":"Conmon"}]})").isPodman);
  EXPECT_TRUE(readHasGpuRuntime(R"({"Runtimes":{"runc":{"path":"runc"},"nvidia":{"path":"x"}}})"));
  EXPECT_FALSE(readHasGpuRuntime(R"({"Runtimes":{"runc":{"path":"runc"}}})"));
  EXPECT_FALSE(readHasGpuRuntime("{}"));
  EXPECT_EQ(readCreatedId(R"({"Id":"abc","Warnings":null})"), "abc");
  const auto containers = readContainers(R"([{"Id":"a","State":"exited","Labels":{"jobq.worker":"w"},"Names":null}])");
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(containers[0].id + containers[0].state + containers[0].worker, "aexitedw");
  const EndedState state = readEndedState(R"({"State":{"ExitCode":137,"OOMKilled":true,"Error":"a\nb"}})");
  EXPECT_EQ(state.exitCode, 137);
  EXPECT_TRUE(state.isOutOfMemory);
  EXPECT_EQ(state.error, "a b");
}

TEST(EngineTextTest, AnotherFormIsAnError) {
  for (const char* const body : {"", "{}", "[{}]", "[1]", R"([{"Id":"a","State":"exited","Labels":null}])"}) {
    EXPECT_THROW(readContainers(body), Error) << body;
    EXPECT_THROW(readCreatedId(body), Error) << body;
    EXPECT_THROW(readVersion(body), Error) << body;
    EXPECT_THROW(readEndedState(body), Error) << body;
  }
}

TEST(EngineTextTest, AMessageIsAClause) {
  EXPECT_EQ(readMessage(R"({"message":"no such image\n"})"), "no such image");
  EXPECT_EQ(readMessage("<html>\n"), "<html>");
  EXPECT_EQ(readMessage(""), "");
}

TEST(EngineTextTest, ComparesVersions) {
  EXPECT_TRUE(isOlderApi("1.9", "1.41"));
  EXPECT_TRUE(isOlderApi("1.41", "2.0"));
  EXPECT_FALSE(isOlderApi("1.41", "1.41"));
  EXPECT_FALSE(isOlderApi("1.41", ""));
}

TEST(ContainerEndTest, NamesTheCause) {
  EXPECT_EQ(reasonOfEnd({0, false, ""}, "bye", false), "it ended with exit code 0");
  EXPECT_EQ(reasonOfEnd({1, false, ""}, "", false), "it ended with exit code 1");
  EXPECT_EQ(reasonOfEnd({1, false, ""}, "no module", false), "it ended with exit code 1: no module");
  EXPECT_EQ(reasonOfEnd({139, false, ""}, "", false), "it ended with exit code 139 (signal 11)");
  EXPECT_EQ(reasonOfEnd({137, true, ""}, "x", false).find("it ended with exit code 137: out of memory"), 0U);
  EXPECT_NE(reasonOfEnd({137, false, ""}, "x", true).find("had not ended in its time"), std::string::npos);
  EXPECT_EQ(reasonOfEnd({128, false, "no runtime"}, "x", false), "it ended with exit code 128: no runtime");
}

TEST(DockerSocketTest, EncodesForUrls) {
  EXPECT_EQ(encodeForUrl("aZ9-._~"), "aZ9-._~");
  EXPECT_EQ(encodeForUrl("a b/c?d=e&f\xc3\xa4"), "a%20b%2Fc%3Fd%3De%26f%C3%A4");
}

}  // namespace
}  // namespace jobq::docker
