// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.output;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.spark.sql.SaveMode;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is there stays, and can be read, if it cannot be replaced. */
class FolderOutputTest {
  @TempDir Path dir;
  private Path target;

  @BeforeEach
  void writeWhatIsThere() throws IOException {
    target = Files.createDirectory(dir.resolve("target"));
    Files.writeString(target.resolve("part"), "old");
    Files.createFile(target.resolve(FolderOutput.SUCCESS));
  }

  @Test
  void aRemovalOfTheMarkerMayTakeEffectAndFail() throws IOException {
    assertTrue(fault(new RawLocalFileSystem() {
      @Override
      public boolean delete(org.apache.hadoop.fs.Path path, boolean recursive) throws IOException {
        super.delete(path, recursive);
        if (path.getName().equals(FolderOutput.SUCCESS)) throw new IOException("503");
        return true;
      }
    }).getMessage().endsWith("503"));
    assertIsOld();
  }

  @Test
  void aFaultOfTheFileSystemsOwnIsNoDifference() throws IOException {
    assertEquals("closed", fault(new RawLocalFileSystem() {
      @Override
      public boolean rename(org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to)
          throws IOException {
        if (to.getName().equals("target") && !from.getName().endsWith(".old")) {
          throw new IllegalStateException("closed");
        }
        return super.rename(from, to);
      }
    }).getMessage());
    assertIsOld();
  }

  @Test
  void aMarkerThatCannotBePutBackHidesNoCause() {
    Throwable fault = fault(new RawLocalFileSystem() {
      @Override
      public FSDataOutputStream create(org.apache.hadoop.fs.Path path, boolean overwrite, int buffer,
          short replication, long block, org.apache.hadoop.util.Progressable progress) throws IOException {
        throw new IOException("no marker");
      }

      @Override
      public boolean rename(org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to)
          throws IOException {
        throw new IOException("no rename");
      }
    });
    assertTrue(fault.getMessage().endsWith("no rename"), fault.toString());
    assertEquals("no marker", fault.getCause().getSuppressed()[0].getMessage());
  }

  private Throwable fault(FileSystem files) {
    return assertThrows(RuntimeException.class, () -> {
      files.initialize(URI.create("file:///"), new Configuration());
      FolderOutput.write(files, target.toString(), SaveMode.Overwrite, staging -> {
        Files.writeString(Files.createDirectory(Path.of(staging.toUri().getPath())).resolve("part"), "new");
        return staging;
      });
    });
  }

  /** Whole, and nothing beside it. */
  private void assertIsOld() throws IOException {
    assertEquals("old", Files.readString(target.resolve("part")));
    assertTrue(Files.exists(target.resolve(FolderOutput.SUCCESS)), "its marker is missing");
    try (Stream<Path> entries = Files.list(dir)) {
      assertEquals(List.of(target), entries.toList());
    }
  }
}
