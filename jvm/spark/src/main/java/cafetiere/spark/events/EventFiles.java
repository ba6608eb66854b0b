// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import cafetiere.spark.util.Json;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files that the param events names: PREFIX.jsonl, and a file for TensorBoard beside it. The
 * driver writes them, by any Hadoop path, from a thread of its own. Once they have been opened,
 * nothing that happens to them ends or slows the training. They replace those of an earlier fit; while
 * another fit of this driver writes files of the same prefix, as one of a cross-validation does, theirs ends
 * in a number.
 */
public final class EventFiles implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(EventFiles.class);
  private static final long CLOSE_SECONDS = 10;

  /** The JSON files that are being written, with their schemes. */
  private static final Set<Path> LIVE = ConcurrentHashMap.newKeySet();

  private final String prefix;
  private final Configuration conf;
  private final ThreadPoolExecutor writer = new ThreadPoolExecutor(
      1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), EventFiles::daemon,
      new ThreadPoolExecutor.DiscardPolicy());  // what comes after close()
  private boolean wasOpen;
  private Path json; // in LIVE, from the first opening on
  private String ending = ""; // of the prefix
  private TensorBoardRecords records;
  private FSDataOutputStream lines;
  private FSDataOutputStream scalars;

  /** {@code prefix} "": no files. They are opened by {@link #startFrom}. */
  public EventFiles(String prefix, Configuration conf) {
    this.prefix = prefix;
    this.conf = conf;
  }

  /**
   * A training goes on from {@code step}: what the JSON file tells of later steps is dropped, and a
   * new file for TensorBoard is begun. Of a file that was there before the run step 0 drops all.
   */
  public void startFrom(long step) {
    if (prefix.isEmpty()) return;
    try {
      writer.submit(() -> {
        open(step);
        return null;
      }).get();
      wasOpen = true;
    } catch (ExecutionException e) {
      String message = "events cannot be written to " + prefix + ".jsonl ("
          + e.getCause().getMessage() + "): set events to a path that the driver can write to";
      if (!wasOpen) throw new UncheckedIOException(message, new IOException(e.getCause()));
      LOG.warn(message);
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
  }

  /** Adds an event. Does not wait for the file. */
  public void write(JsonNode event) {
    if (!prefix.isEmpty()) writer.execute(() -> append(event));
  }

  private static Thread daemon(Runnable task) {
    Thread thread = new Thread(task, "cafetiere-event-files");
    thread.setDaemon(true);
    return thread;
  }

  @Override
  public void close() {
    writer.execute(() -> {
      closeFiles();
      if (json != null) LIVE.remove(json);
    });
    writer.shutdown();
    try {
      if (!writer.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)) {
        LOG.warn("The last events are not in {}.jsonl: its file system does not answer", prefix);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void open(long step) throws IOException {
    closeFiles();
    FileSystem found = new Path(prefix + ".jsonl").getFileSystem(conf);
    // The raw one has no checksums beside each file and shows a line as soon as it is written.
    FileSystem files = found instanceof LocalFileSystem local ? local.getRawFileSystem() : found;
    if (json == null) json = claim(files);
    List<String> kept = (step > 0 || wasOpen) && files.exists(json) ? upTo(step, json, files) : List.of();
    lines = files.create(json, true);
    for (String line : kept) lines.write((line + "\n").getBytes(StandardCharsets.UTF_8));
    show(lines);
    String name = "events.out.tfevents." + System.currentTimeMillis() + "."
        + ProcessHandle.current().pid() + ending;
    scalars = files.create(new Path(json.getParent(), name), true);
    scalars.write(TensorBoardRecords.header());
    records = new TensorBoardRecords();
  }

  private Path claim(FileSystem files) {
    for (int number = 2;; number++) {
      Path path = files.makeQualified(new Path(prefix + ending + ".jsonl"));
      if (LIVE.add(path)) {
        if (!ending.isEmpty()) {
          LOG.warn("Another fit writes {}.jsonl: the events of this one go to {}", prefix, path);
        }
        return path;
      }
      ending = "-" + number;
    }
  }

  /** A line that a full disk or a killed driver has cut off goes, too. */
  private static List<String> upTo(long step, Path file, FileSystem files) throws IOException {
    try (BufferedReader reader = new BufferedReader(
        new InputStreamReader(files.open(file), StandardCharsets.UTF_8))) {
      return reader.lines().filter(line -> Json.read(line)
          .filter(event -> event.path("step").asLong(0) <= step).isPresent()).toList();
    }
  }

  private void append(JsonNode event) {
    if (lines == null) return;
    try {
      lines.write((event + "\n").getBytes(StandardCharsets.UTF_8));
      show(lines);
      scalars.write(records.of(event));
      show(scalars);
    } catch (IOException e) {
      LOG.warn("No more events are written to {}.jsonl: {}", prefix, e.getMessage());
      closeFiles();
    }
  }

  /** Has readers see what is written; an object store shows a file when it is closed. */
  private static void show(FSDataOutputStream file) throws IOException {
    if (file.hasCapability(StreamCapabilities.HFLUSH)) file.hflush();
  }

  private void closeFiles() {
    for (FSDataOutputStream file : new FSDataOutputStream[] {lines, scalars}) {
      try {
        if (file != null) file.close();
      } catch (IOException e) {
        LOG.warn("Closing the event files of {}: {}", prefix, e.getMessage());
      }
    }
    lines = null;
    scalars = null;
  }
}
