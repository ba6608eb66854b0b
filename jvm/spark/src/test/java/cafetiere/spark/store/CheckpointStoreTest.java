// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import cafetiere.spark.TestImages;
import cafetiere.spark.store.CheckpointStore.Checkpoint;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CheckpointStoreTest {
  @TempDir Path dir;
  private CheckpointStore store;

  @BeforeEach
  void open() throws IOException {
    store = new CheckpointStore(dir.resolve("run").toUri().toString(), new Configuration());
  }

  @Test
  void isEmptyBeforeTheFirstWrite() throws IOException {
    assertTrue(store.newest().isEmpty());
  }

  @Test
  void givesBackTheNewestBytes() throws IOException {
    write(10);
    write(20);
    Checkpoint newest = store.newest().orElseThrow();
    assertEquals(20, newest.step());
    CheckpointStore.Parts parts = store.load(newest);
    assertArrayEquals(bytes("model 20"), parts.model().bytes());
    assertArrayEquals(bytes("state 20"), parts.state().bytes());
  }

  @Test
  void keepsTheLastTwo() throws IOException {
    for (long step : new long[] {5, 50, 500, 1000}) write(step);
    assertEquals(List.of("step-000000000500", "step-000000001000"), folders());
  }

  @Test
  void aStepWrittenTwiceIsReplaced() throws IOException {
    write(10);
    write(10);
    assertEquals(10, store.newest().orElseThrow().step());
    assertEquals(1, folders().size());
  }

  @Test
  void aDamagedModelFallsBackToTheOneBefore() throws IOException {
    write(10);
    write(20);
    damage("step-000000000020", "model.caffemodel");
    assertEquals(10, store.newest().orElseThrow().step());
  }

  @Test
  void filesComeBackAsFiles() throws IOException {
    writeFiles(10);
    Checkpoint newest = store.newest().orElseThrow();
    assertTrue(newest.isFiles());
    assertTrue(Files.exists(dir.resolve("run/step-000000000010/model.caffemodel.h5")));
    CheckpointStore.Fetched here = store.fetch(newest, dir);
    assertEquals("model 10", Files.readString(here.model()));
    assertEquals("state 10", Files.readString(here.state()));
  }

  @Test
  void aChangedOrShortenedFileFallsBackToTheOneBefore() throws IOException {
    for (long step : new long[] {10, 20}) writeFiles(step);
    damage("step-000000000020", "model.caffemodel.h5");
    assertEquals(10, store.newest().orElseThrow().step());
    CheckpointStore.Fetched here = store.fetchNewest(dir).orElseThrow();
    assertEquals("model 10", Files.readString(here.model()));
    writeFiles(20);
    Files.writeString(dir.resolve("run/step-000000000020/state.solverstate.h5"), "state");
    assertEquals(10, store.newest().orElseThrow().step());
    assertEquals("state 10", Files.readString(store.fetchNewest(dir).orElseThrow().state()));
  }

  @Test
  void aMissingManifestFallsBackToTheOneBefore() throws IOException {
    write(10);
    write(20);
    Files.delete(dir.resolve("run/step-000000000020/manifest.json"));
    assertEquals(10, store.newest().orElseThrow().step());
  }

  @Test
  void nothingGoodIsNothing() throws IOException {
    write(10);
    damage("step-000000000010", "state.solverstate");
    assertTrue(store.newest().isEmpty());
  }

  /** They are of higher steps than those that a run writes which begins anew. */
  @Test
  void damagedOnesDoNotDisplaceWhatIsWritten() throws IOException {
    for (long step : new long[] {80, 100}) {
      write(step);
      damage(CheckpointStore.name(step), "state.solverstate");
    }
    Files.writeString(dir.resolve("run/step-000000000080/manifest.json"), "{\"step\": 8");
    assertTrue(store.newest().isEmpty());
    assertTrue(store.hasAny() && store.keepFinished());
    for (long step : new long[] {10, 20, 30}) write(step);
    assertEquals(List.of("_damaged-step-000000000080", "_damaged-step-000000000100",
        "step-000000000020", "step-000000000030"), folders());
    assertEquals(30, store.newest().orElseThrow().step());
  }

  @Test
  void whatWasLeftHalfWrittenIsNotSeen() throws IOException {
    write(10);
    Files.createDirectories(dir.resolve("run/_writing-20-1"));
    assertEquals(10, store.newest().orElseThrow().step());
  }

  @Test
  void namesHaveTheSameDigitsInEveryLocale() {
    Locale before = Locale.getDefault();
    Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
    try {
      assertEquals("step-000000000020", CheckpointStore.name(20));
    } finally {
      Locale.setDefault(before);
    }
  }

  @Test
  void aFolderWithoutAFinishedCheckpointIsRemoved() throws IOException {
    Files.createDirectories(dir.resolve("run/_writing-20-1"));
    assertFalse(store.keepFinished());
    assertFalse(Files.exists(dir.resolve("run")));
    write(10);
    assertTrue(store.keepFinished());
    assertEquals(10, store.newest().orElseThrow().step());
  }

  @Test
  void theTemporaryFolderMayHaveABlankInItsPath() throws IOException {
    Path tmp = dir.resolve("a tmp");
    inTemporary(tmp, folder -> assertEquals(ownIn(tmp) + "/run-1",
        new org.apache.hadoop.fs.Path(folder).toUri().getPath()));
  }

  @Test
  void nobodyElseEntersTheTemporaryFolder() throws IOException {
    inTemporary(dir.resolve("tmp"), folder -> {
      CheckpointFolder.makeTemporary(folder);
      CheckpointFolder.makeTemporary(folder);
      Path own = ownIn(dir.resolve("tmp"));
      assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(own)));
    });
  }

  @Test
  void aTemporaryFolderOfSomebodyElseIsRefused() throws IOException {
    Path own = Files.createDirectories(ownIn(dir.resolve("tmp")));
    assumeTrue(isGivenTo("nobody", own), "it takes root to give a folder away");
    assertEquals(own + " belongs to nobody", refusal());
  }

  @Test
  void soIsALinkInItsPlace() throws IOException {
    Path own = ownIn(Files.createDirectories(dir.resolve("tmp")));
    Files.createSymbolicLink(own, Files.createDirectories(dir.resolve("elsewhere")));
    assertEquals(own + " is no folder", refusal());
  }

  private static boolean isGivenTo(String owner, Path folder) {
    try {
      Files.setOwner(folder,
          folder.getFileSystem().getUserPrincipalLookupService().lookupPrincipalByName(owner));
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private String refusal() throws IOException {
    String[] refusal = new String[1];
    inTemporary(dir.resolve("tmp"), folder -> refusal[0] =
        assertThrows(IOException.class, () -> CheckpointFolder.makeTemporary(folder)).getMessage());
    return refusal[0];
  }

  private static Path ownIn(Path tmp) {
    return tmp.resolve("cafetiere-" + System.getProperty("user.name"));
  }

  private interface Use {
    void of(String folder) throws IOException;
  }

  /** With another temporary folder, the one for checkpoints. */
  private static void inTemporary(Path tmp, Use use) throws IOException {
    String before = System.getProperty("java.io.tmpdir");
    System.setProperty("java.io.tmpdir", tmp.toString());
    try {
      use.of(CheckpointFolder.of(TestImages.session().sparkContext(), "", "1"));
    } finally {
      System.setProperty("java.io.tmpdir", before);
    }
  }

  @Test
  void foldersOfFailedRunsGoAfterAWeek() throws IOException {
    long now = System.currentTimeMillis();
    for (String name : List.of("run-old", "run-new", "other")) {
      Files.createDirectories(dir.resolve(name));
      long days = name.equals("run-new") ? 6 : 8;
      Files.setLastModifiedTime(
          dir.resolve(name), FileTime.fromMillis(now - TimeUnit.DAYS.toMillis(days)));
    }
    CheckpointFolder.sweep(new org.apache.hadoop.fs.Path(dir.resolve("run-own").toUri()),
        new Configuration(), now);
    try (Stream<Path> left = Files.list(dir)) {
      assertEquals(List.of("other", "run-new"),
          left.map(path -> path.getFileName().toString()).sorted().toList());
    }
  }

  /** Two fits that begin at once find the same folders. */
  @Test
  void sweepsAtOnceDoNotDisturbEachOther() throws Exception {
    long now = System.currentTimeMillis();
    FileTime old = FileTime.fromMillis(now - TimeUnit.DAYS.toMillis(8));
    for (int run = 0; run < 30; run++) {
      Path step = Files.createDirectories(dir.resolve("run-" + run).resolve("step"));
      for (int file = 0; file < 10; file++) {
        Files.setLastModifiedTime(Files.writeString(step.resolve("file" + file), "old"), old);
      }
      for (Path folder : List.of(step, step.getParent())) Files.setLastModifiedTime(folder, old);
    }
    var own = new org.apache.hadoop.fs.Path(dir.resolve("run-own").toUri());
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      for (Future<Object> sweep : threads.invokeAll(Collections.nCopies(4, () -> {
        CheckpointFolder.sweep(own, new Configuration(), now);
        return null;
      }))) {
        sweep.get();
      }
    } finally {
      threads.shutdown();
    }
    try (Stream<Path> left = Files.list(dir)) {
      assertEquals(List.of(), left.toList());
    }
  }

  private void write(long step) throws IOException {
    ByteBuffer model = ByteBuffer.wrap(bytes("model " + step));
    ByteBuffer state = ByteBuffer.wrap(bytes("state " + step));
    store.write(step, Contents.of(model, state), 2, "avx2", "0", "");
    assertEquals(bytes("model " + step).length, model.remaining(), "the caller's buffer is left");
  }

  private void writeFiles(long step) throws IOException {
    Path model = Files.writeString(dir.resolve("model"), "model " + step);
    Path state = Files.writeString(dir.resolve("state"), "state " + step);
    store.write(step, Contents.of(model, state), 2, "avx2", "0", "");
  }

  /** Flips a bit, as a damaged disk would. */
  private void damage(String checkpoint, String file) throws IOException {
    Path path = dir.resolve("run").resolve(checkpoint).resolve(file);
    byte[] bytes = Files.readAllBytes(path);
    bytes[0] ^= 1;
    Files.write(path, bytes);
  }

  private List<String> folders() throws IOException {
    try (Stream<Path> entries = Files.list(dir.resolve("run"))) {
      return entries.map(p -> p.getFileName().toString()).sorted().collect(Collectors.toList());
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
