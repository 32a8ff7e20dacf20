extern "C" __attribute__((visibility("default"))) int jobqFixtureDependency();
int jobqFixtureDependency() { return 7; }
