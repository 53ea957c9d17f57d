// Objects of a thread that outlive `exit`.
#pragma once
#include <pthread.h>

namespace sx {

// The calling thread's own T, made at the first use and deleted when the thread ends.  Not thread_local: exit()
// destroys the main thread's thread_local objects before it runs the application's exit handlers, which may still
// launch kernels.  One object per type: wrap what is used twice.
template <class T>
class PerThread {
 public:
  static T &get() {
    static pthread_key_t key = [] {
      pthread_key_t made;
      pthread_key_create(&made, [](void *object) {
        mine = nullptr;
        delete static_cast<T *>(object);
      });
      return made;
    }();
    if (!mine) {
      mine = new T;
      pthread_setspecific(key, mine);
    }
    return *mine;
  }

 private:
  static inline thread_local T *mine = nullptr;
};

}  // namespace sx
