// Looks at device nodes with every function of the C library that takes a path.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TRUE(what)                                              \
  do {                                                          \
    if (!(what)) {                                              \
      printf("%d: not " #what " (%s)\n", __LINE__, strerror(errno)); \
      exit(1);                                                  \
    }                                                           \
  } while (0)

extern "C" {
int __xstat(int, const char *, struct stat *);
int __lxstat64(int, const char *, struct stat64 *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __open_2(const char *, int);
int __open64_2(const char *, int);
}

static const char device[] = "/dev/nvidia0", control[] = "/dev/nvidiactl", version[] = "/proc/driver/nvidia/version";

static bool fails(int result, int error) { return result == -1 && errno == error; }

static bool is_node(const struct stat &s, unsigned minor_number) {
  return S_ISCHR(s.st_mode) && (s.st_mode & 0777) == 0666 && major(s.st_rdev) == 195 && minor(s.st_rdev) == minor_number;
}

static void check_stat() {
  struct stat s;
  struct stat64 wide;
  struct statx extended;
  TRUE(!stat(device, &s) && is_node(s, 0));
  TRUE(!lstat(control, &s) && is_node(s, 255));
  TRUE(!stat64(device, &wide) && S_ISCHR(wide.st_mode));
  TRUE(!lstat64(device, &wide) && S_ISCHR(wide.st_mode));
  TRUE(!fstatat(AT_FDCWD, device, &s, 0) && is_node(s, 0));
  TRUE(!fstatat64(-1, device, &wide, AT_SYMLINK_NOFOLLOW) && S_ISCHR(wide.st_mode));
  TRUE(!__xstat(1, device, &s) && is_node(s, 0));
  TRUE(!__lxstat64(1, device, &wide) && S_ISCHR(wide.st_mode));
  TRUE(!__fxstatat(1, AT_FDCWD, device, &s, 0) && is_node(s, 0));
  TRUE(!statx(AT_FDCWD, control, 0, STATX_BASIC_STATS, &extended) && S_ISCHR(extended.stx_mode) &&
       extended.stx_rdev_minor == 255);
  TRUE(!stat(version, &s) && S_ISREG(s.st_mode) && (s.st_mode & 0777) == 0444);
  TRUE(!stat("/proc/driver/nvidia", &s) && S_ISDIR(s.st_mode));
}

static void check_access() {
  TRUE(!access(device, F_OK) && !access(device, R_OK | W_OK) && fails(access(device, X_OK), EACCES));
  TRUE(!access(version, R_OK) && fails(access(version, W_OK), EACCES));
  TRUE(!access("/proc/driver/nvidia", X_OK));
  TRUE(!euidaccess(device, R_OK) && !eaccess(control, W_OK) && !faccessat(AT_FDCWD, device, R_OK, 0));
}

static void check_open() {
  char text[200] = "";
  for (int file : {open(device, O_RDWR), open64(control, O_RDWR | O_CLOEXEC), openat(AT_FDCWD, device, O_RDONLY),
                   openat64(AT_FDCWD, device, O_RDWR), __open_2(device, O_RDWR), __open64_2(control, O_RDWR)}) {
    TRUE(file >= 0);
    TRUE(fails(ioctl(file, _IOC(3u, 'F', 200, 8), text), ENOTTY));  // no driver implements it
    close(file);
  }
  int file = open(version, O_RDONLY | O_CLOEXEC);
  TRUE(file >= 0 && (fcntl(file, F_GETFD) & FD_CLOEXEC));
  TRUE(read(file, text, sizeof text - 1) > 0 && strstr(text, "Kernel Module  580.159.04  "));
  close(file);
  TRUE(fails(open(version, O_RDWR), EACCES) && fails(open("/proc/driver/nvidia", O_WRONLY), EACCES));
  FILE *stream = fopen(version, "r");
  TRUE(stream && fgets(text, sizeof text, stream) && strchr(text, '\n') && !fgets(text, sizeof text, stream));
  fclose(stream);
  TRUE(!fopen(version, "w") && !fopen64(version, "r+"));
  stream = fopen64(device, "r+");
  TRUE(stream);
  fclose(stream);
}

// Everything else is the system's, with its errors.
static void check_others(const char *folder) {
  struct stat s;
  struct statx extended;
  for (const char *path : {"/dev/nvidia00", "/dev/nvidia", "/dev/nvidia0x", "/dev/nvidia77", "/dev/nvidia-uvm",
                           "/proc/driver/nvidia/versions", "/proc/driver/nvidiactl", "dev/nvidia0", "", "/no/such"}) {
    TRUE(fails(stat(path, &s), ENOENT) && fails(access(path, F_OK), ENOENT) && fails(open(path, O_RDONLY), ENOENT));
    TRUE(fails(statx(AT_FDCWD, path, 0, STATX_MODE, &extended), ENOENT) && !fopen(path, "r") && errno == ENOENT);
  }
  const char *volatile nowhere = nullptr;
  TRUE(fails(stat(nowhere, &s), EFAULT) && fails(open(nowhere, O_RDONLY), EFAULT));
  char path[4096];
  snprintf(path, sizeof path, "%s/file", folder);
  umask(0);
  int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0640);
  TRUE(file >= 0 && write(file, "text", 4) == 4 && !close(file));
  TRUE(!stat(path, &s) && s.st_size == 4 && (s.st_mode & 07777) == 0640);
  TRUE(fails(open(path, O_CREAT | O_EXCL | O_WRONLY, 0640), EEXIST));
  file = openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR, 0604);
  if (file >= 0) {
    TRUE(!fstat(file, &s) && (s.st_mode & 07777) == 0604);
    close(file);
  }
  FILE *stream = fopen(path, "a+");
  TRUE(stream && fputs("more", stream) >= 0 && !fclose(stream) && !stat(path, &s) && s.st_size == 8);
}

int main(int, char **argv) {
  check_stat();
  check_access();
  check_open();
  check_others(argv[1]);
  printf("PASS\n");
}
