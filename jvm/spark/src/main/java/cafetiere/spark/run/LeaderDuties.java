// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.core.CafetiereException.Code;
import cafetiere.core.Engine;
import cafetiere.core.Trainer;
import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.events.RunEvent;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.store.Contents;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.TaskFolder;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;

/**
 * What rank 0 does besides training: it sends events to the driver and writes checkpoints. Among
 * survivors anyone may become rank 0, so each of them has one, and it does nothing before its time.
 */
public final class LeaderDuties implements Trainer.Listener, AutoCloseable {
  private final TaskSetup setup;
  private final String writer;
  private final CheckpointStore checkpoints;
  private MetricsRoute route;
  private final long checkpointNanos;
  private Trainer trainer;
  private long storedAtNanos = System.nanoTime();
  private boolean leads = true;
  private long view;

  /** {@code writer} tells apart those who may write checkpoints at the same time. */
  public LeaderDuties(TaskSetup setup, String writer) throws IOException {
    this.setup = setup;
    this.writer = writer;
    this.checkpointNanos = TimeUnit.SECONDS.toNanos(setup.checkpointSeconds());
    this.checkpoints = setup.store();
  }

  /** Has {@code trainer} take checkpoints by time, where there is no interval of steps. */
  public void storeByTime(Trainer trainer) {
    this.trainer = trainer;
  }

  /** A view of survivors begins, in which this member is rank 0 or not. */
  public void startView(long generation, boolean first) {
    view = generation;
    leads = first;
    if (route != null) route.startView(view);
  }

  @Override
  public void event(String json) {
    if (!leads) return;
    if (route == null) {
      route = new MetricsRoute(setup.metrics(), setup.attempt());
      route.startView(view);
    }
    route.send(json);
    askForCheckpoint();
  }

  /** There is an event at least once a second. */
  private void askForCheckpoint() {
    long now = System.nanoTime();
    if (trainer == null || checkpointNanos == 0 || now - storedAtNanos < checkpointNanos) return;
    storedAtNanos = now;
    trainer.checkpoint();
  }

  @Override
  public void checkpoint(String json, ByteBuffer model, ByteBuffer state) {
    storedAtNanos = System.nanoTime();
    try {
      JsonNode told = Json.parse(json);
      if (model != null) {
        store(told, Contents.of(model, state));
      } else {
        Path modelFile = Path.of(told.path("model_file").asText());
        Path stateFile = Path.of(told.path("state_file").asText());
        store(told, Contents.of(modelFile, stateFile));
        Files.delete(modelFile);
        Files.delete(stateFile);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    }
  }

  private void store(JsonNode told, Contents contents) throws IOException {
    long step = told.path("step").asLong();
    if (setup.snapshots().areWritten() && told.path("snapshot").asBoolean()) {
      setup.snapshots().write(step, contents, setup.hadoop().value());
    }
    write(checkpoints, step, contents, "");
  }

  /**
   * Puts the trained model where the driver takes it from: it may be too large for a result. The
   * outcome that it returns lies beside it, as the task may be lost before it has handed it back.
   * {@code skipped}: bad rows that were left out, as far as the rank knows.
   */
  public TaskOutcome finish(Trainer trainer, long skipped, int rank, String executor,
      TaskFolder folder) throws IOException {
    String result =
        ((ObjectNode) Json.parse(trainer.result())).put("rows_skipped", skipped).toString();
    TaskOutcome outcome =
        new TaskOutcome(rank, executor, Code.OK, "", result, route(), lastEvents(), Map.of());
    CheckpointStore results = results(setup.checkpoints(), setup.hadoop().value());
    Contents trained;
    if (setup.isLarge() || Json.parse(outcome.result()).path("files").asBoolean()) {
      Path model = folder.path().resolve("trained.caffemodel.h5");
      Path state = folder.path().resolve("trained.solverstate.h5");
      trainer.save(model, state);
      trained = Contents.of(model, state);
    } else {
      trained = Contents.of(trainer.model(), trainer.state());
    }
    write(results, 0, trained, outcome.toJson());
    return outcome;
  }

  /** The folder of {@link #finish}, inside the run's. */
  public static CheckpointStore results(String checkpoints, Configuration hadoop) throws IOException {
    return new CheckpointStore(checkpoints + "/result", hadoop);
  }

  /** How events travel; "" before the first. */
  public String route() {
    return route == null ? "" : route.name();
  }

  /** The newest events. */
  public List<RunEvent> lastEvents() {
    return route == null ? List.of() : route.last();
  }

  @Override
  public void close() {
    if (route != null) route.close();
  }

  private void write(CheckpointStore store, long step, Contents contents, String note)
      throws IOException {
    store.write(step, contents, setup.plan().shards(), Engine.instructionSet(), writer, note);
  }
}
