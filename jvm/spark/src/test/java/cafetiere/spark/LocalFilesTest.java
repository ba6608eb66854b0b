// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LocalFilesTest {
  @TempDir Path dir;

  @Test
  void aFolderMayGoWhileItIsLookedInto() throws IOException {
    Path kept = Files.createFile(Files.createDirectories(dir.resolve("a/b")).resolve("file"));
    Path gone = Files.createDirectory(dir.resolve("gone"));
    Files.createFile(Files.createDirectories(dir.resolve("a/b/c/d")).resolve("file"));
    List<Path> found = LocalFiles.find(dir, 3, path -> {
      if (path.equals(gone)) delete(path);
      return path.endsWith("file");
    });
    assertEquals(List.of(kept), found);
    assertEquals(List.of(), LocalFiles.find(gone, 3, path -> true));
  }

  private static void delete(Path path) {
    try {
      Files.delete(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
