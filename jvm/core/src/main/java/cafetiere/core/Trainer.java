// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import java.nio.ByteBuffer;
import java.nio.file.Path;

/** One rank of a training. */
public final class Trainer extends Handle {
  /** Hears of a run, on the thread that runs it and on rank 0 only. What it throws ends the run. */
  public interface Listener {
    /** A JSON object about progress, a test or a message; cft_callbacks lists them. */
    void event(String json);

    /**
     * A complete checkpoint. The buffers are read-only and valid only during the call; `json` tells
     * step and sha256 of the model. With the option checkpoint_folder they are null where `json` names
     * files instead, model_file and state_file, which the listener moves or removes.
     */
    void checkpoint(String json, ByteBuffer model, ByteBuffer state);
  }

  /** Makes a trainer; `options` is the JSON that cft_trainer_create describes. */
  public Trainer(String options, Listener listener) {
    super(create(options, listener), Native::trainerDestroy);
  }

  /** Starts from these weights and, unless `state` is null, goes on from this solver state. */
  public void restore(byte[] model, byte[] state) {
    run(trainer -> Native.trainerRestore(trainer, model, state));
  }

  /**
   * The same from files of any size, which may be removed at once; `state` may be null.
   */
  public void restore(Path model, Path state) {
    run(trainer -> Native.trainerRestoreFiles(trainer, text(model), text(state)));
  }

  /** Hands over the rows to test on, this rank's part of them; `rows` is empty afterwards. */
  public void validation(Rows rows) {
    run(trainer -> rows.run(table -> Native.trainerValidation(trainer, table)));
  }

  /** Trains alone to the end; `rows` is empty afterwards. */
  public void run(Rows rows) {
    run(trainer -> rows.run(table -> Native.trainerRun(trainer, 0, table)));
  }

  /** Trains to the end together with the other ranks of `group`; `rows` is empty afterwards. */
  public void run(Group group, Rows rows) {
    run(
        trainer ->
            group.run(ranks -> rows.run(table -> Native.trainerRun(trainer, ranks, table))));
  }

  /**
   * Goes on in another group with the rows of a run that a lost peer has ended, from the newest
   * state that any of its ranks has.
   */
  public void resume(Group group) {
    run(trainer -> group.run(ranks -> Native.trainerRun(trainer, ranks, 0)));
  }

  /** Stops the run at its next step. Any thread; safe after close. */
  public void cancel() {
    runUnlessClosed(Native::trainerCancel);
  }

  /**
   * Asks rank 0 for a checkpoint between two of its next steps; the weights do not depend on it. Any
   * thread; safe after close.
   */
  public void checkpoint() {
    runUnlessClosed(Native::trainerCheckpoint);
  }

  /**
   * The rows that this rank has trained on so far, by epoch, as JSON: {"0": N, ...}. Those of a round
   * count when it has ended. Any thread; after close {}.
   */
  public String rows() {
    String[] rows = {"{}"};
    runUnlessClosed(trainer -> rows[0] = Native.text(Native.trainerRows(trainer)));
    return rows[0];
  }

  /**
   * What this rank's time has gone to so far, as JSON: seconds of "computing", "data", "network",
   * "testing", "storing" and "starting". On the thread that runs it.
   */
  public String seconds() {
    return call(trainer -> Native.text(Native.trainerSeconds(trainer)));
  }

  /** The summary of a finished run, as JSON. */
  public String result() {
    return call(trainer -> Native.text(Native.trainerResult(trainer)));
  }

  /** The weights after a run, as a caffemodel. */
  public byte[] model() {
    return call(Native::trainerModel);
  }

  /** Iteration and history after a run, as a solverstate. */
  public byte[] state() {
    return call(Native::trainerState);
  }

  /**
   * Writes model and state after a run as HDF5 files of any size, once and last: the state may be
   * moved from the checkpoint_folder. `state` may be null.
   */
  public void save(Path model, Path state) {
    run(trainer -> Native.trainerSave(trainer, text(model), text(state)));
  }

  private static byte[] text(Path path) {
    return path == null ? null : Native.utf8(path.toString());
  }

  private static long create(String options, Listener listener) {
    NativeLibrary.load();
    return Native.trainerCreate(Native.utf8(options), listener);
  }
}
