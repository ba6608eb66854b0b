// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.DriverProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
      while (other.isAlive() && !Files.exists(parent.resolve("ready"))) Thread.sleep(20);
      assertTrue(other.isAlive(), () -> DriverProcess.read(log.resolve("log")));
      List<Path> held = folders();
      assertEquals(1, held.size());
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

  private List<Path> folders() throws IOException {
    try (Stream<Path> entries = Files.list(parent)) {
      return entries.filter(Files::isDirectory).toList();
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
