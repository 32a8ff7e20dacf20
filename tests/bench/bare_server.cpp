// bench_bare PORT FILE: a bare Poco HTTPServer. The server reads each request's body and answers the bytes in FILE,
// with the header fields of jobq's own answer. All rows are measured against this server. Ends with SIGTERM.
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/ThreadPool.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

namespace {

using namespace Poco::Net;

class Handler final : public HTTPRequestHandler {
 public:
  explicit Handler(const std::string& answer) : answer_(answer) {}
  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    std::string body(static_cast<std::size_t>(request.getContentLength()), '\0');
    request.stream().read(body.data(), static_cast<std::streamsize>(body.size()));
    response.erase(HTTPMessage::CONNECTION);  // answers of jobq lack this field, and the bytes have to be equal
    response.setContentType("application/json");
    response.sendBuffer(answer_.data(), answer_.size());
  }

 private:
  const std::string& answer_;
};

class Factory final : public HTTPRequestHandlerFactory {
 public:
  explicit Factory(std::string answer) : answer_(std::move(answer)) {}
  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest&) override { return new Handler(answer_); }

 private:
  const std::string answer_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_bare PORT FILE\n";
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  std::string answer{std::istreambuf_iterator<char>(file), {}};
  Poco::ThreadPool pool(1, 600, 60, 256 * 1024);
  ServerSocket socket(SocketAddress("127.0.0.1", static_cast<Poco::UInt16>(std::atoi(argv[1]))), 4096);
  HTTPServerParams::Ptr params = new HTTPServerParams;
  params->setMaxThreads(600);
  params->setMaxQueued(4096);
  HTTPServer server(HTTPRequestHandlerFactory::Ptr(new Factory(std::move(answer))), pool, socket, params);
  server.start();
  ::pause();
}
