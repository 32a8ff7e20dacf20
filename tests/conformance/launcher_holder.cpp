// Holds a launcher with two workers until the process is killed: launcher_holder DATA FOLDER NAME. The workers leave
// processes in other sessions and write files into FOLDER; LIFE there is a pipe that all processes hold.
#include <unistd.h>

#include <memory>
#include <string>

#include "jobq/worker_launcher.h"
#include "launcher_fixture.h"
#include "testkit/wait_for.h"

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const std::string folder = arguments[2];
  const std::string name = arguments[3];
  ::alarm(static_cast<unsigned int>(jobq::testkit::kWorkDeadline.count()));  // no process stays if the test dies
  jobq::testkit::SilentLog log;
  const std::unique_ptr<jobq::WorkerLauncher> launcher = jobq::test::loadProcessLauncher(log, arguments[1]);
  const std::string script =
      "exec 9>\"$FOLDER/life\"; trap '' TERM HUP INT; "
      "(setsid sh -c 'trap \"\" TERM HUP INT; (setsid sh -c \"echo > $FOLDER/$0; sleep 3600\" $0 &) ; sleep 3600' $1 "
      "&); "
      "while :; do sleep 0.1; done";
  for (const char* const worker : {"-a", "-b"}) {
    launcher->start({name + worker, "ep", jobq::test::shellContainer(script, {worker + 1}), {{"FOLDER", folder}}});
  }
  while (true) ::pause();
}
