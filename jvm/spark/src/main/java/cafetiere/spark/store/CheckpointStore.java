// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.store;

import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.HadoopFiles.Content;
import cafetiere.spark.util.ModelPart;
import cafetiere.spark.util.Sha256;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.DigestInputStream;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumException;
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
  private static final String DAMAGED = "_damaged-";
  private static final String MODEL = "model.caffemodel";
  private static final String STATE = "state.solverstate";
  private static final String MANIFEST = "manifest.json";

  /**
   * What the manifest of a checkpoint says.
   *
   * @param name the folder's name, for {@link #read}
   * @param step solver iterations done
   * @param instructionSet what it was computed with
   * @param ending "" of a caffemodel and a solverstate, ".h5" of HDF5 files
   * @param hashes sha256 of the model and of the state
   * @param note what its writer put beside them, or ""
   */
  public record Checkpoint(String name, long step, String instructionSet, String ending,
      List<String> hashes, String note) {
    /** Whether it may be larger than an array. */
    public boolean isFiles() {
      return !ending.isEmpty();
    }
  }

  /** The two files of a checkpoint, as bytes or as files elsewhere. */
  public record Parts(ModelPart model, ModelPart state) {}

  /** Copies on this machine of the two files of a checkpoint. */
  public record Fetched(java.nio.file.Path model, java.nio.file.Path state) {}

  private final Path dir;
  private final FileSystem files;
  private boolean hasToldOfOld;

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
   * Writes a checkpoint and then drops all but the last two, if it can. {@code writer} tells two
   * writers apart (a rank 0 that was given up may still be at work): what they write has the same
   * bytes, so it does not matter whose rename comes last. {@code note} is for its reader.
   */
  public void write(long step, Contents contents, int shards, String instructionSet, String writer,
      String note) throws IOException {
    Path aside = new Path(dir, ASIDE + step + "-" + writer);
    try {
      files.delete(aside, true);
      files.mkdirs(aside);
      var manifest = JSON.createObjectNode();
      manifest.put("step", step).put("shards", shards).put("instruction_set", instructionSet);
      if (!note.isEmpty()) manifest.put("note", note);
      String ending = contents.ending();
      if (!ending.isEmpty()) manifest.put("ending", ending);
      manifest.put("model_sha256", writeFile(new Path(aside, MODEL + ending), contents.model()));
      manifest.put("state_sha256", writeFile(new Path(aside, STATE + ending), contents.state()));
      byte[] text = manifest.toString().getBytes(StandardCharsets.UTF_8);
      writeFile(new Path(aside, MANIFEST), out -> out.write(text));
      moveInPlace(aside, new Path(dir, name(step)));
    } catch (IOException | FSError e) {  // the latter is what a local disk throws when it is full
      HadoopFiles.discard(files, aside);  // it must not take up the room that it did not find
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

  /**
   * The newest checkpoint that is whole. A damaged one is logged, renamed so that it no longer counts, and
   * passed over: it would displace those that a run writes from here on.
   *
   * @throws IOException if the file system fails, which says nothing about a checkpoint
   */
  public Optional<Checkpoint> newest() throws IOException {
    return newest(checkpoint -> {
      copy(checkpoint, OutputStream.nullOutputStream(), OutputStream.nullOutputStream());
      return checkpoint;
    }, this::setAside);
  }

  /** The same, fetched into a folder of this machine; of a run that may be writing, so nothing is renamed. */
  public Optional<Fetched> fetchNewest(java.nio.file.Path folder) throws IOException {
    return newest(checkpoint -> fetch(checkpoint, folder), name -> { });
  }

  private interface Use<T> {
    T of(Checkpoint checkpoint) throws IOException;
  }

  /** What is wrong with a checkpoint and stays so, however often it is read. */
  private static final class Damage extends IOException {
    private static final long serialVersionUID = 1L;

    Damage(String message, Throwable cause) {
      super(message, cause);
    }
  }

  private <T> Optional<T> newest(Use<T> use, Consumer<String> damaged) throws IOException {
    for (String name : names(PREFIX)) {
      try {
        return Optional.of(use.of(read(name)));
      } catch (Damage e) {
        LOG.warn("Checkpoint {} is not usable ({}); trying the one before", name, e.getMessage());
        damaged.accept(name);
      } catch (IOException e) {
        throw new IOException("could not read the checkpoint " + name + " in " + location() + ": "
            + e.getMessage() + "; fit again when its file system answers, or remove the checkpoint's folder"
            + " to go on from the one before", e);
      }
    }
    return Optional.empty();
  }

  private void setAside(String name) {
    Path to = new Path(dir, DAMAGED + name);
    try {
      files.delete(to, true);
      if (files.rename(new Path(dir, name), to)) return;
      LOG.warn("Checkpoint {} could not be renamed to {}", name, to);
    } catch (IOException e) {
      LOG.warn("Checkpoint {} could not be renamed to {}: {}", name, to, e.getMessage());
    }
  }

  /** What a checkpoint's manifest says, by its folder's name. */
  public Checkpoint read(String name) throws IOException {
    try (InputStream in = open(new Path(new Path(dir, name), MANIFEST))) {
      JsonNode manifest = JSON.readTree(in);
      return new Checkpoint(name, manifest.path("step").asLong(),
          manifest.path("instruction_set").asText(), manifest.path("ending").asText(),
          List.of(manifest.path("model_sha256").asText(), manifest.path("state_sha256").asText()),
          manifest.path("note").asText());
    } catch (JsonProcessingException | ChecksumException e) {
      throw new Damage(MANIFEST + " is not readable: " + e.getMessage(), e);
    }
  }

  /** Local file systems say of a file that may not be opened, too, that it is not found. */
  private InputStream open(Path path) throws IOException {
    try {
      return files.open(path);
    } catch (FileNotFoundException e) {
      if (files.exists(path)) throw e;
      throw new Damage(path.getName() + " is missing", e);
    }
  }

  /** A checkpoint's files as bytes, compared with its manifest; for those that fit an array. */
  public Parts load(Checkpoint checkpoint) throws IOException {
    var model = new ByteArrayOutputStream();
    var state = new ByteArrayOutputStream();
    copy(checkpoint, model, state);
    return new Parts(ModelPart.of(model.toByteArray()), ModelPart.of(state.toByteArray()));
  }

  /** Copies a checkpoint's files into a folder of this machine and compares them with its manifest. */
  public Fetched fetch(Checkpoint checkpoint, java.nio.file.Path folder) throws IOException {
    var model = folder.resolve("stored-" + MODEL + checkpoint.ending());
    var state = folder.resolve("stored-" + STATE + checkpoint.ending());
    try (OutputStream modelOut = Files.newOutputStream(model);
        OutputStream stateOut = Files.newOutputStream(state)) {
      copy(checkpoint, modelOut, stateOut);
    }
    return new Fetched(model, state);
  }

  /** Makes a folder outside the store of a checkpoint, with its files. */
  public Parts move(Checkpoint checkpoint, String folder) throws IOException {
    Path target = new Path(folder);
    files.mkdirs(target.getParent());
    moveInPlace(new Path(dir, checkpoint.name()), target);
    return new Parts(ModelPart.ofFile(new Path(target, MODEL + checkpoint.ending()).toString()),
        ModelPart.ofFile(new Path(target, STATE + checkpoint.ending()).toString()));
  }

  private void copy(Checkpoint checkpoint, OutputStream model, OutputStream state)
      throws IOException {
    copy(checkpoint, MODEL, checkpoint.hashes().get(0), model);
    copy(checkpoint, STATE, checkpoint.hashes().get(1), state);
  }

  /** Removes the folder and all that is in it. */
  public void delete() throws IOException {
    files.delete(dir, true);
  }

  /** Removes the folder if no checkpoint in it is finished, nor a damaged one; whether one is. */
  boolean keepFinished() throws IOException {
    if (hasAny()) return true;
    delete();
    return false;
  }

  /** Whether there are checkpoints, be they damaged. */
  public boolean hasAny() throws IOException {
    return !names(PREFIX).isEmpty() || !names(DAMAGED).isEmpty();
  }

  /** The name of the checkpoint at a step. */
  public static String name(long step) {
    return String.format(Locale.ROOT, "%s%012d", PREFIX, step);
  }

  /** Names that begin so: those of the finished checkpoints, or of damaged ones; newest first. */
  private List<String> names(String prefix) throws IOException {
    List<String> names = new ArrayList<>();
    if (!files.exists(dir)) return names;
    for (FileStatus entry : files.listStatus(dir)) {
      if (entry.getPath().getName().startsWith(prefix)) names.add(entry.getPath().getName());
    }
    names.sort(Comparator.reverseOrder());
    return names;
  }

  /** The new checkpoint is in place: that an old one stays is no more than a warning, told once. */
  private void prune() {
    try {
      List<String> names = names(PREFIX);
      for (String old : names.subList(Math.min(KEPT, names.size()), names.size())) {
        files.delete(new Path(dir, old), true);
      }
    } catch (IOException | RuntimeException | FSError e) {
      if (hasToldOfOld) return;
      hasToldOfOld = true;
      LOG.warn("Old checkpoints in {} could not be removed: {}", location(), e.getMessage());
    }
  }

  private String writeFile(Path path, Content content) throws IOException {
    MessageDigest digest = Sha256.digest();
    try (OutputStream out = new DigestOutputStream(files.create(path, true), digest)) {
      content.writeTo(out);
    }
    return Sha256.of(digest);
  }

  private void copy(Checkpoint checkpoint, String name, String expected, OutputStream to)
      throws IOException {
    Path path = new Path(new Path(dir, checkpoint.name()), name + checkpoint.ending());
    MessageDigest digest = Sha256.digest();
    try (InputStream in = new DigestInputStream(open(path), digest)) {
      in.transferTo(to);
    } catch (ChecksumException e) {
      throw new Damage(e.getMessage(), e);
    }
    String found = Sha256.of(digest);
    if (!found.equals(expected)) {
      throw new Damage(path.getName() + " in " + path.getParent() + " has sha256 " + found
          + " but its manifest says " + expected + "; the file is damaged, delete the folder", null);
    }
  }
}
