// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.Logged;
import cafetiere.spark.StoreFiles;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import cafetiere.spark.run.Run;
import cafetiere.spark.store.CheckpointStore.Checkpoint;
import cafetiere.spark.util.HadoopFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where a rename copies and a request may be refused nothing half written is taken for a whole. */
class ObjectStoreTest {
  /** Several reads of a copy. */
  private static final int SIZE = 40_000;
  private static final Configuration CONF = StoreFiles.configuration();

  @TempDir Path dir;

  @AfterEach
  void recover() {
    StoreFiles.recover();
  }

  /** Each request in turn is refused, alone or as the last that there is. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aCheckpointIsThereOrTheOneBeforeIs(boolean ends) throws IOException {
    boolean failed = true;
    for (int request = 1; failed; request++) {
      CheckpointStore store = store("run-" + request);
      for (long step : new long[] {10, 20}) write(store, step);
      StoreFiles.failAt(request, ends);
      boolean isWritten = isDone(() -> write(store("run-" + folderOf(store)), 30));
      failed = StoreFiles.recover();
      Checkpoint newest = store.newest().orElseThrow();
      if (isWritten) assertEquals(30, newest.step(), "request " + request);
      assertTrue(newest.step() >= 20, "request " + request);
      assertArrayEquals(bytes("model " + newest.step()), store.load(newest).model().bytes());
      assertArrayEquals(bytes("state " + newest.step()), store.load(newest).state().bytes());
    }
  }

  @Test
  void anOldCheckpointThatStaysIsNoReasonAgainstTheNewOne() throws IOException {
    CheckpointStore store = store("run-1");
    for (long step : new long[] {10, 20}) write(store, step);
    StoreFiles.refuse(request -> request.startsWith("delete ") && request.contains("/step-"));
    try (Logged logged = new Logged(CheckpointStore.class)) {
      for (long step : new long[] {30, 40}) write(store, step);
      assertEquals(1, logged.text().lines().count(), logged.text());
      assertTrue(logged.text().startsWith("WARN Old checkpoints in "), logged.text());
    }
    assertEquals(40, store.newest().orElseThrow().step());
  }

  /** A request that is refused says nothing about the checkpoint. */
  @Test
  void aReadThatFailsIsNoDamagedCheckpoint() throws IOException {
    CheckpointStore store = store("run-1");
    for (long step : new long[] {10, 20}) write(store, step);
    boolean failed = true;
    for (int request = 1; failed; request++) {
      StoreFiles.failAt(request, false);
      boolean isRead = isDone(() -> assertEquals(20, store.newest().orElseThrow().step()));
      failed = StoreFiles.recover();
      assertEquals(!failed, isRead, "request " + request);
    }
    assertEquals(20, store.newest().orElseThrow().step());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aFileIsWholeOrNotThere(boolean ends) throws IOException {
    Path from = Files.write(dir.resolve("from"), new byte[SIZE]);
    for (String way : List.of("write", "replace", "copy")) {
      boolean failed = true;
      for (int request = 1; failed; request++) {
        String path = StoreFiles.path(dir.resolve(way + request));
        HadoopFiles.write(path, bytes("old"), CONF);
        StoreFiles.failAt(request, ends);
        boolean isWritten = isDone(() -> put(way, from, path));
        failed = StoreFiles.recover();
        if (isWritten) assertEquals(SIZE, HadoopFiles.length(path, CONF));
        if (!ends || HadoopFiles.exists(path, CONF)) {
          assertTrue(List.of(3L, (long) SIZE).contains(HadoopFiles.length(path, CONF)), way + request);
        }
      }
    }
  }

  /** Where its folder is put back, too; if no request is answered any more, the error says where it is. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatIsReplacedStaysUntilItIs(boolean ends) throws IOException {
    for (String way : List.of("file", "folder")) {
      boolean failed = true;
      for (int request = 1; failed; request++) {
        Path to = filled(way, way + request, "old");
        Path from = filled(way, "from", "new");
        StoreFiles.failAt(request, ends);
        String error = moveOver(from, to);
        failed = StoreFiles.recover();
        String where = way + " " + request + ": " + error;
        if (error.isEmpty() || !ends) {
          assertEquals(error.isEmpty() ? "new" : "old", whole(way, to), where);
        } else if (whole(way, to).isEmpty()) {
          assertTrue(error.contains(StoreFiles.path(from).replace("//", "")), where);
          assertEquals("new", whole(way, from), where);
        }
      }
    }
  }

  @Test
  void aFileReplacesNoFolder() throws IOException {
    Path folder = filled("folder", "there", "old");
    String message = assertThrows(UncheckedIOException.class,
        () -> HadoopFiles.write(StoreFiles.path(folder), bytes("new"), CONF)).getMessage();
    assertTrue(message.endsWith("it is a folder"), message);
    assertEquals("old", whole("folder", folder));
  }

  private static String moveOver(Path from, Path to) {
    var target = new org.apache.hadoop.fs.Path(StoreFiles.path(to));
    try {
      FileSystem files = target.getFileSystem(CONF);
      HadoopFiles.moveOver(files, new org.apache.hadoop.fs.Path(StoreFiles.path(from)), target,
          () -> files.create(target.suffix(".done"), true).close());
      return "";
    } catch (IOException | UncheckedIOException e) {
      return e.toString();
    }
  }

  private Path filled(String way, String name, String text) throws IOException {
    Path place = dir.resolve(name);
    if (way.equals("file")) return Files.writeString(place, text);
    for (String file : List.of("a", "b")) {
      Files.writeString(Files.createDirectories(place).resolve(file), text);
    }
    return place;
  }

  /** The text of a file, or of both files of a folder; "" if there is none that is whole. */
  private static String whole(String way, Path place) throws IOException {
    if (way.equals("file")) return Files.exists(place) ? Files.readString(place) : "";
    List<Path> files = List.of(place.resolve("a"), place.resolve("b"));
    if (!files.stream().allMatch(Files::exists)) return "";
    String text = Files.readString(files.get(0));
    return text.equals(Files.readString(files.get(1))) ? text : "";
  }

  @Test
  void theAgeOfARunIsThatOfItsNewestFile() throws IOException {
    long now = System.currentTimeMillis();
    for (String run : List.of("run-living", "run-old")) write(store(run), 10);
    try (Stream<Path> files = Files.walk(dir.resolve("run-old"))) {
      for (Path file : files.toList()) {
        Files.setLastModifiedTime(file, FileTime.fromMillis(now - TimeUnit.DAYS.toMillis(8)));
      }
    }
    Files.createDirectories(dir.resolve("run-empty"));
    CheckpointFolder.sweep(
        new org.apache.hadoop.fs.Path(StoreFiles.path(dir.resolve("run-own"))), CONF, now);
    try (Stream<Path> left = Files.list(dir)) {
      assertEquals(List.of("run-empty", "run-living"),
          left.map(path -> path.getFileName().toString()).sorted().toList());
    }
  }

  /** An upload that its writer breaks off ends as an object, too: not at the path. */
  @Test
  void whatCannotBeReadToItsEndIsNotWritten() {
    String path = StoreFiles.path(dir.resolve("model"));
    assertThrows(UncheckedIOException.class, () -> HadoopFiles.replace(path, out -> {
      out.write(1);
      throw new IOException("the source has ended");
    }, CONF));
    assertFalse(HadoopFiles.exists(path, CONF));
  }

  /** Checkpoints, a snapshot, events and the model of a training whose first checkpoint is refused. */
  @Test
  void aTrainingHasTheSameBitsThere() throws IOException {
    SparkSession spark = TestImages.session();
    Path fault = dir.resolve("fault");
    StoreFiles.configure(spark.sparkContext(), fault);
    Dataset<Row> points = TestNets.points(spark, 103);
    CaffeModel calm = estimator("calm").fit(points);
    Files.writeString(fault, "");
    CaffeModel model = estimator("busy").setEvents(StoreFiles.path(dir.resolve("events/run")))
        .fit(points);
    assertFalse(Files.exists(fault), "no rename was refused");
    assertEquals(2, model.summary().attempts());
    assertArrayEquals(calm.weights(), model.weights());
    assertEquals(model.events(), Files.readString(dir.resolve("events/run.jsonl")));
    try (Stream<Path> files = Files.list(dir.resolve("events"))) {
      assertEquals(3, files.filter(file -> file.toFile().length() > 0).count(),
          "the lines, and a file for TensorBoard an attempt");
    }
    String saved = StoreFiles.path(dir.resolve("saved"));
    HadoopFiles.write(saved + ".caffemodel", model.weights(), spark.sparkContext().hadoopConfiguration());
    CaffeModel tuned = estimator("tuned").setWeights(saved + ".caffemodel").fit(points);
    assertEquals(60, tuned.summary().steps());
  }

  /** The model is in memory by then. */
  @Test
  void aFolderThatStaysCostsNoModel() throws IOException {
    SparkSession spark = TestImages.session();
    StoreFiles.configure(spark.sparkContext(), dir.resolve("fault"));
    StoreFiles.refuse(request -> request.startsWith("delete "));
    try (Logged logged = new Logged(Run.class)) {
      CaffeModel model = estimator("kept").setResume(true).fit(TestNets.points(spark, 103));
      assertEquals(60, model.summary().steps());
      assertEquals(2, logged.text().lines().filter(line -> line.startsWith("WARN The training has ended well")
          && line.contains("could not be removed: 503")).count(), logged.text());
    }
  }

  private CaffeEstimator estimator(String name) {
    return new CaffeEstimator().setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER).setIdCol("id")
        .setNumWorkers(2).setShards(2).setCheckpointInterval(20)
        .setCheckpointDir(StoreFiles.path(dir.resolve(name)));
  }

  private CheckpointStore store(String folder) throws IOException {
    return new CheckpointStore(StoreFiles.path(dir.resolve(folder)), CONF);
  }

  private static String folderOf(CheckpointStore store) {
    return store.location().replaceFirst(".*/run-", "");
  }

  private static void write(CheckpointStore store, long step) throws IOException {
    Contents contents = Contents.of(bytes("model " + step), bytes("state " + step));
    store.write(step, contents, 2, "avx2", "0", "");
  }

  private void put(String way, Path from, String to) throws IOException {
    switch (way) {
      case "write" -> HadoopFiles.write(to, Files.readAllBytes(from), CONF);
      case "replace" -> HadoopFiles.replace(to, out -> Files.copy(from, out), CONF);
      default -> HadoopFiles.copy(StoreFiles.path(from), to, CONF);
    }
  }

  private interface Work {
    void run() throws IOException;
  }

  private static boolean isDone(Work work) {
    try {
      work.run();
      return true;
    } catch (IOException | UncheckedIOException e) {
      assertTrue(e.getMessage().contains("503"), e.getMessage());
      return false;
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
  }
}
