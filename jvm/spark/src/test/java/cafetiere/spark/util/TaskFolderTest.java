// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import cafetiere.spark.DriverProcess;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(value = 60, unit = TimeUnit.SECONDS)
class TaskFolderTest {
  @TempDir Path parent;
  @TempDir Path log;

  @Test
  void goesWithAllThatIsInIt() throws IOException {
    TaskFolder folder = new TaskFolder(parent);
    Files.createDirectories(folder.path().resolve("a/b"));
    Files.writeString(folder.path().resolve("a/b/c"), "text");
    folder.close();
    assertEquals(List.of(), folders());
  }

  @Test
  void othersOfTheSameProcessAreLeftAlone() throws IOException {
    try (TaskFolder first = new TaskFolder(parent); TaskFolder second = new TaskFolder(parent)) {
      assertTrue(Files.isDirectory(first.path()));
      assertTrue(Files.isDirectory(second.path()));
    }
  }

  @Test
  void thatOfAKilledProcessGoesWithTheNextAndThatOfALivingOneDoesNot() throws Exception {
    Process other = DriverProcess.start(Holder.class, log.resolve("log"), parent.toString());
    try {
      List<Path> held = held(other);
      new TaskFolder(parent).close();
      assertEquals(held, folders());
      other.destroyForcibly().waitFor();
      assertEquals(held, folders());
      try (TaskFolder next = new TaskFolder(parent)) {
        assertEquals(List.of(next.path()), folders());
      }
    } finally {
      other.destroyForcibly();
    }
    assertFalse(other.isAlive());
  }

  /** As NFS is without its daemon for locks. */
  @Test
  void aFileSystemWithoutLocksWillDo() throws Exception {
    Path library = withoutLocks();
    assumeTrue(library != null, "there is no C compiler");
    Process other = DriverProcess.start(Holder.class, log.resolve("log"),
        Map.of("LD_PRELOAD", library.toString()), parent.toString());
    try {
      List<Path> held = held(other);
      new TaskFolder(parent).close();
      assertEquals(held, folders(), "nobody knows whether its process lives");
    } finally {
      other.destroyForcibly();
    }
  }

  /** The one folder there, once a process has made it. */
  private List<Path> held(Process other) throws Exception {
    while (other.isAlive() && !Files.exists(parent.resolve("ready"))) Thread.sleep(20);
    assertTrue(other.isAlive(), () -> DriverProcess.read(log.resolve("log")));
    List<Path> held = folders();
    assertEquals(1, held.size());
    return held;
  }

  /** A library that has the kernel refuse locks, or null. */
  private Path withoutLocks() throws Exception {
    Path source = Files.writeString(log.resolve("locks.c"), """
        #include <errno.h>
        #include <stdarg.h>
        #include <fcntl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static int call(int file, int command, void *argument) {
          if (command == F_SETLK || command == F_SETLKW) { errno = ENOLCK; return -1; }
          return syscall(SYS_fcntl, file, command, argument);
        }
        #define FORWARD(name) int name(int file, int command, ...) { \\
          va_list rest; va_start(rest, command); void *argument = va_arg(rest, void *); va_end(rest); \\
          return call(file, command, argument); }
        FORWARD(fcntl)
        FORWARD(fcntl64)
        """);
    Path library = log.resolve("locks.so");
    try {
      Process compiler = new ProcessBuilder("cc", "-shared", "-fPIC", "-o", library.toString(),
          source.toString()).inheritIO().start();
      assertEquals(0, compiler.waitFor());
    } catch (IOException e) {
      return null;
    }
    return library;
  }

  /** Also where the other reaches the folder by a link. */
  @Test
  void anotherClassLoaderOfThisProcessKeepsTheLock() throws Exception {
    Path link = Files.createSymbolicLink(log.resolve("link"), parent);
    try (TaskFolder living = new TaskFolder(parent); URLClassLoader other = otherLoader()) {
      for (Path way : List.of(parent, link)) {
        var type = other.loadClass(TaskFolder.class.getName());
        ((AutoCloseable) type.getConstructor(Path.class).newInstance(way)).close();
        sweepFromAnotherProcess();
        assertEquals(List.of(living.path()), folders());
      }
    }
  }

  /** With all classes of this one anew. */
  private static URLClassLoader otherLoader() throws IOException {
    List<URL> places = new ArrayList<>();
    for (String place : System.getProperty("java.class.path").split(File.pathSeparator)) {
      places.add(Path.of(place).toUri().toURL());
    }
    return new URLClassLoader(places.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
  }

  private void sweepFromAnotherProcess() throws Exception {
    Process other = DriverProcess.start(Sweeper.class, log.resolve("log"), parent.toString());
    try {
      assertEquals(0, other.waitFor(), () -> DriverProcess.read(log.resolve("log")));
    } finally {
      other.destroyForcibly();
    }
  }

  /** That of the same process, as an older jar in a class loader of its own has. */
  @Test
  void whatIsLockedInThisProcessIsLeftAlone() throws IOException {
    Path folder = Files.createDirectory(parent.resolve("cafetiere-task-other"));
    try (FileChannel channel = FileChannel.open(folder.resolve(".lock"), StandardOpenOption.CREATE_NEW,
        StandardOpenOption.WRITE)) {
      channel.lock();
      new TaskFolder(parent).close();
      assertEquals(List.of(folder), folders());
    }
  }

  /** As any user can put it into a folder that all write to; whoever opened a pipe for writing would wait. */
  @Test
  void aPipeOrALinkInPlaceOfTheLockIsLeftAlone() throws Exception {
    Path pipe = Files.createDirectory(parent.resolve("cafetiere-task-pipe"));
    assertEquals(0, new ProcessBuilder("mkfifo", pipe.resolve(".lock").toString()).start().waitFor());
    Path link = Files.createDirectory(parent.resolve("cafetiere-task-link"));
    Path target = Files.createFile(log.resolve("target"));
    Files.createSymbolicLink(link.resolve(".lock"), target);
    assertTimeoutPreemptively(Duration.ofSeconds(20), () -> new TaskFolder(parent).close());
    assertEquals(Set.of(pipe, link), Set.copyOf(folders()));
    assertTrue(Files.exists(target));
  }

  private List<Path> folders() throws IOException {
    try (Stream<Path> entries = Files.list(parent)) {
      return entries.filter(Files::isDirectory).toList();
    }
  }

  /** Makes a folder, and with it removes those that killed processes have left. */
  static final class Sweeper {
    private Sweeper() {}

    public static void main(String[] args) throws IOException {
      new TaskFolder(Path.of(args[0])).close();
    }
  }

  /** Has a folder with a file in it until it is killed. */
  static final class Holder {
    private Holder() {}

    public static void main(String[] args) throws Exception {
      Path parent = Path.of(args[0]);
      try (TaskFolder folder = new TaskFolder(parent)) {
        Files.writeString(folder.path().resolve("file"), "text");
        Files.createFile(parent.resolve("ready"));
        Thread.sleep(Long.MAX_VALUE);
      }
    }
  }
}
