// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.store;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The checkpoints of one run, in a folder that the driver and every executor reach through Hadoop's
 * file systems. A checkpoint is a folder {@code step-N} with the model, the solver state and a
 * manifest that holds the hashes of both; it is written aside and renamed, so that a reader sees
 * all of it or nothing.
 */
public final class CheckpointStore {
  /** How many checkpoints stay: the newest and one to fall back on. */
  public static final int KEPT = 2;

  private static final Logger LOG = LoggerFactory.getLogger(CheckpointStore.class);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String PREFIX = "step-";
  private static final String ASIDE = "_writing-";
  private static final String MODEL = "model.caffemodel";
  private static final String STATE = "state.solverstate";
  private static final String MANIFEST = "manifest.json";
  private static final int CHUNK = 1 << 20;

  /**
   * One checkpoint whose bytes agree with its manifest.
   *
   * @param name the folder's name, for {@link #read}
   * @param step solver iterations done
   * @param instructionSet what it was computed with
   * @param model a caffemodel
   * @param state a solverstate
   * @param note what its writer put beside them, or ""
   */
  public record Checkpoint(
      String name, long step, String instructionSet, byte[] model, byte[] state, String note) {}

  private final Path dir;
  private final FileSystem files;

  /** Opens the folder {@code dir}; it is made by the first {@link #write}. */
  public CheckpointStore(String dir, Configuration conf) throws IOException {
    this.dir = new Path(dir);
    FileSystem found = this.dir.getFileSystem(conf);
    // Hadoop's checksums of local files add nothing to ours, and hold on to a file that did not fit.
    this.files = found instanceof LocalFileSystem local ? local.getRawFileSystem() : found;
  }

  /** The folder, with its scheme. */
  public String location() {
    return files.makeQualified(dir).toString();
  }

  /**
   * Writes a checkpoint and then drops all but the last two. {@code writer} tells two writers apart
   * (a rank 0 that was given up may still be at work): what they write has the same bytes, so it
   * does not matter whose rename comes last.
   */
  public void write(long step, ByteBuffer model, ByteBuffer state, int shards,
      String instructionSet, String writer) throws IOException {
    write(step, model, state, shards, instructionSet, writer, "");
  }

  /** The same, with a {@code note} for its reader. */
  public void write(long step, ByteBuffer model, ByteBuffer state, int shards,
      String instructionSet, String writer, String note) throws IOException {
    Path aside = new Path(dir, ASIDE + step + "-" + writer);
    try {
      files.delete(aside, true);
      files.mkdirs(aside);
      var manifest = JSON.createObjectNode();
      manifest.put("step", step).put("shards", shards).put("instruction_set", instructionSet);
      if (!note.isEmpty()) manifest.put("note", note);
      manifest.put("model_sha256", writeFile(new Path(aside, MODEL), model));
      manifest.put("state_sha256", writeFile(new Path(aside, STATE), state));
      byte[] text = manifest.toString().getBytes(StandardCharsets.UTF_8);
      writeFile(new Path(aside, MANIFEST), ByteBuffer.wrap(text));
      moveInPlace(aside, new Path(dir, name(step)));
    } catch (IOException | FSError e) {  // the latter is what a local disk throws when it is full
      discard(aside);
      throw new IOException("could not write the checkpoint of step " + step + " to " + location()
          + ": " + e.getMessage() + "; free space there or set checkpointDir to a folder that can be"
          + " written to", e);
    }
    prune();
  }

  private void moveInPlace(Path aside, Path target) throws IOException {
    files.delete(target, true);
    if (!files.rename(aside, target)) {
      throw new IOException("could not rename " + aside + " to " + target
          + "; check that the folder is writable and is not used by a second run");
    }
  }

  /** What could not be finished must not take up the room that it did not find. */
  private void discard(Path aside) {
    try {
      files.delete(aside, true);
    } catch (IOException e) {
      LOG.warn("{} could not be removed: {}", aside, e.getMessage());
    }
  }

  /** The newest checkpoint that is whole; a damaged one is logged and passed over. */
  public Optional<Checkpoint> newest() throws IOException {
    for (String name : names()) {
      try {
        return Optional.of(read(name));
      } catch (IOException e) {
        LOG.warn("Checkpoint {} is not usable ({}); trying the one before", name, e.getMessage());
      }
    }
    return Optional.empty();
  }

  /** Reads one checkpoint by its folder's name and compares it with its manifest. */
  public Checkpoint read(String name) throws IOException {
    Path folder = new Path(dir, name);
    JsonNode manifest = JSON.readTree(readFile(new Path(folder, MANIFEST)));
    byte[] model = readFile(new Path(folder, MODEL));
    byte[] state = readFile(new Path(folder, STATE));
    verify(folder, MODEL, model, manifest.path("model_sha256").asText());
    verify(folder, STATE, state, manifest.path("state_sha256").asText());
    return new Checkpoint(name, manifest.path("step").asLong(),
        manifest.path("instruction_set").asText(), model, state, manifest.path("note").asText());
  }

  /** Removes the folder and all that is in it. */
  public void delete() throws IOException {
    files.delete(dir, true);
  }

  /** Removes the folder if no checkpoint in it is finished; whether one is. */
  boolean keepFinished() throws IOException {
    if (!names().isEmpty()) return true;
    delete();
    return false;
  }

  /** The name of the checkpoint at a step. */
  public static String name(long step) {
    return String.format(Locale.ROOT, "%s%012d", PREFIX, step);
  }

  /** NearestName of the finished checkpoints, newest first. */
  private List<String> names() throws IOException {
    List<String> names = new ArrayList<>();
    if (!files.exists(dir)) return names;
    for (FileStatus entry : files.listStatus(dir)) {
      if (entry.getPath().getName().startsWith(PREFIX)) names.add(entry.getPath().getName());
    }
    names.sort(Comparator.reverseOrder());
    return names;
  }

  private void prune() throws IOException {
    List<String> names = names();
    for (String old : names.subList(Math.min(KEPT, names.size()), names.size())) {
      files.delete(new Path(dir, old), true);
    }
  }

  private String writeFile(Path path, ByteBuffer bytes) throws IOException {
    MessageDigest digest = sha256();
    byte[] chunk = new byte[Math.min(CHUNK, Math.max(1, bytes.remaining()))];
    ByteBuffer rest = bytes.duplicate();
    try (OutputStream out = files.create(path, true)) {
      while (rest.hasRemaining()) {
        int count = Math.min(chunk.length, rest.remaining());
        rest.get(chunk, 0, count);
        digest.update(chunk, 0, count);
        out.write(chunk, 0, count);
      }
    }
    return HexFormat.of().formatHex(digest.digest());
  }

  private byte[] readFile(Path path) throws IOException {
    try (InputStream in = files.open(path)) {
      return in.readAllBytes();
    }
  }

  private static void verify(Path folder, String file, byte[] bytes, String expected)
      throws IOException {
    String found = HexFormat.of().formatHex(sha256().digest(bytes));
    if (!found.equals(expected)) {
      throw new IOException(file + " in " + folder + " has sha256 " + found
          + " but its manifest says " + expected + "; the file is damaged, delete the folder");
    }
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
