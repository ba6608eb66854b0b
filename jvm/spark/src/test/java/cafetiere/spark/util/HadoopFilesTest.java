// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.StrictFiles;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.io.compress.CompressionInputStream;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Files that several write, and what goes wrong on the way. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class HadoopFilesTest {
  private static final int ROUNDS = 500;
  private static final Configuration CONF = StrictFiles.configuration();

  @TempDir Path dir;

  /** On a file system whose renames replace nothing, and on one whose renames do. */
  @ParameterizedTest
  @CsvSource({"true,false", "true,true", "false,false", "false,true"})
  void ofTwoWritersTheFileOfOneThatSucceededIsThere(boolean isStrict, boolean isOld) throws Exception {
    ExecutorService writers = Executors.newFixedThreadPool(2);
    try {
      for (int i = 0; i < ROUNDS; i++) {
        Path file = dir.resolve("file" + i);
        String path = isStrict ? StrictFiles.path(file) : file.toUri().toString();
        if (isOld) HadoopFiles.writeText(path, "old", CONF);
        List<String> written = writeAtOnce(writers, path);
        assertFalse(written.isEmpty(), "both have failed");
        String text = HadoopFiles.readText(path, CONF);
        assertTrue(written.contains(text), path + " has " + text + ", and " + written + " were written");
      }
    } finally {
      writers.shutdownNow();
    }
    assertEquals(List.of(), left());
  }

  /** What those have written that say they have. */
  private static List<String> writeAtOnce(ExecutorService writers, String path) throws Exception {
    CyclicBarrier start = new CyclicBarrier(2);
    List<Future<Boolean>> results = new ArrayList<>();
    for (String text : List.of("first", "second")) {
      results.add(writers.submit(() -> {
        start.await();
        try {
          HadoopFiles.writeText(path, text, CONF);
          return true;
        } catch (UncheckedIOException e) {
          return false;
        }
      }));
    }
    List<String> written = new ArrayList<>();
    if (results.get(0).get()) written.add("first");
    if (results.get(1).get()) written.add("second");
    return written;
  }

  /** What writers have left beside their files. */
  private List<String> left() throws IOException {
    try (Stream<Path> files = Files.list(dir)) {
      return files.map(file -> file.getFileName().toString())
          .filter(name -> !name.matches("(\\.file\\d+\\.crc|file\\d+)")).toList();
    }
  }

  /** That came between the two renames, once for a file and once for a folder. */
  @Test
  void whatAnotherHasPutThereMeanwhileStays() throws IOException {
    for (boolean isFolder : new boolean[] {false, true}) {
      Path to = dir.resolve("to" + isFolder);
      Path from = dir.resolve("from" + isFolder);
      Path others = dir.resolve("others" + isFolder);
      for (Path place : List.of(to, from, others)) fill(place, isFolder);
      FileSystem files = new Overtaken(others, to);
      files.initialize(URI.create("file:///"), CONF);
      IOException error = assertThrows(IOException.class,
          () -> HadoopFiles.moveOver(files, hadoop(from), hadoop(to), () -> {}));
      assertTrue(error.getMessage().contains("cannot rename"), error.getMessage());
      Path text = isFolder ? to.resolve("text") : to;
      assertEquals(others.getFileName().toString(), Files.readString(text));
      if (isFolder) assertEquals(List.of(text), entries(to));
      assertTrue(Files.exists(from), "the writer removes it");
    }
    assertEquals(List.of("fromfalse", "fromtrue", "tofalse", "totrue"),
        entries(dir).stream().map(path -> path.getFileName().toString()).toList());
  }

  @Test
  void whatIsReplacedIsPutBackWhateverIsThrown() throws IOException {
    Path to = Files.writeString(dir.resolve("to"), "old");
    Path from = Files.writeString(dir.resolve("from"), "new");
    FileSystem files = FileSystem.getLocal(CONF).getRaw();
    assertThrows(IllegalStateException.class, () -> HadoopFiles.moveOver(files, hadoop(from), hadoop(to),
        () -> {
          throw new IllegalStateException("the ending");
        }));
    assertEquals("old", Files.readString(to));
    assertEquals(List.of(to), entries(dir));
  }

  @Test
  void nothingStaysOfAFileWhoseContentCannotBeMade() throws IOException {
    String path = StrictFiles.path(dir.resolve("file"));
    assertThrows(IllegalStateException.class, () -> HadoopFiles.replace(path, out -> {
      throw new IllegalStateException("the content");
    }, CONF));
    assertEquals(List.of(), entries(dir));
  }

  @Test
  void aFileWhoseCodecFailsIsClosed() throws Exception {
    Path file = Files.writeString(dir.resolve("text.broken"), "text");
    Configuration conf = new Configuration(CONF);
    conf.set("io.compression.codecs", BrokenCodec.class.getName());
    assertEquals("no library", assertThrows(IllegalStateException.class,
        () -> HadoopFiles.open(new org.apache.hadoop.fs.Path(StrictFiles.path(file)), conf)).getMessage());
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      assertFalse(open.anyMatch(descriptor -> isLinkTo(descriptor, file)), "it is still open");
    }
  }

  private static boolean isLinkTo(Path link, Path file) {
    try {
      return Files.readSymbolicLink(link).equals(file);
    } catch (IOException e) {
      return false;  // that of the listing itself is closed
    }
  }

  /** A codec whose native library is missing. */
  public static final class BrokenCodec extends DefaultCodec {
    @Override
    public CompressionInputStream createInputStream(InputStream in) {
      throw new IllegalStateException("no library");
    }

    @Override
    public String getDefaultExtension() {
      return ".broken";
    }
  }

  /** What the disk itself refuses is an error to Hadoop, which must not hide that the file is written. */
  @Test
  void whatCannotBeDiscardedIsNoError() throws IOException {
    Path to = Files.writeString(dir.resolve("to"), "old");
    Path from = Files.writeString(dir.resolve("from"), "new");
    FileSystem files = new RawLocalFileSystem() {
      @Override
      public boolean delete(org.apache.hadoop.fs.Path path, boolean recursive) throws IOException {
        try (OutputStream full = create(new org.apache.hadoop.fs.Path("/dev/full"), true)) {
          full.write(1);
        }
        return true;
      }
    };
    files.initialize(URI.create("file:///"), CONF);
    assertThrows(FSError.class, () -> files.delete(hadoop(from), false));
    HadoopFiles.moveOver(files, hadoop(from), hadoop(to), () -> {});
    assertEquals("new", Files.readString(to));
  }

  private static void fill(Path place, boolean isFolder) throws IOException {
    String name = place.getFileName().toString();
    if (!isFolder) Files.writeString(place, name);
    if (isFolder) Files.writeString(Files.createDirectory(place).resolve("text"), name);
    if (isFolder && name.startsWith("to")) Files.writeString(place.resolve("more"), name);
  }

  private static List<Path> entries(Path folder) throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.sorted().toList();
    }
  }

  private static org.apache.hadoop.fs.Path hadoop(Path file) {
    return new org.apache.hadoop.fs.Path(file.toString());
  }

  /** Where another writer moves its own to a path as soon as what was there is aside. */
  private static final class Overtaken extends RawLocalFileSystem {
    private final Path others;
    private final Path to;

    Overtaken(Path others, Path to) {
      this.others = others;
      this.to = to;
    }

    @Override
    public boolean rename(org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path target)
        throws IOException {
      if (exists(target)) return false;
      Files.move(pathToFile(from).toPath(), pathToFile(target).toPath());
      if (pathToFile(from).toPath().equals(to)) Files.move(others, to);
      return true;
    }
  }
}
