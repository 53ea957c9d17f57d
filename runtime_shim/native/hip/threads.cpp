#include "threads.h"

#include <csignal>
#include <pthread.h>

namespace sx {

bool start_thread(const char *name, void (*body)()) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  struct Start {
    const char *name;
    void (*body)();
  };
  auto run = [](void *argument) -> void * {
    Start start = *static_cast<Start *>(argument);
    delete static_cast<Start *>(argument);
    pthread_setname_np(pthread_self(), start.name);
    start.body();
    return nullptr;
  };
  Start *start = new Start{name, body};
  int error = pthread_create(&thread, &attributes, run, start);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) delete start;
  return error == 0;
}

}  // namespace sx
