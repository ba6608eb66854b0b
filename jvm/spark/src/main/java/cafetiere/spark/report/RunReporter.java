// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.report;

import cafetiere.spark.TrainingSummary;
import cafetiere.spark.cost.AccountEvent;
import cafetiere.spark.events.EventFiles;
import cafetiere.spark.events.ProgressLine;
import cafetiere.spark.events.RunEvent;
import cafetiere.spark.events.RunEvents;
import cafetiere.spark.gauges.RunGauges;
import cafetiere.spark.ui.RunBoard;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.Optional;
import org.apache.spark.SparkContext;

/** Shows a run's events on the console, in files, as gauges of Spark's metrics and in Spark's UI. */
public final class RunReporter implements AutoCloseable {
  private static final int MAX_EVENTS = 20_000;

  /** A local property of the thread that trains: it draws a bar in place of the console's line. */
  private static final String HAS_BAR = "spark.cafetiere.hasProgressBar";

  private final String id;
  private final ProgressLine progress;
  private final EventFiles files;
  private final Optional<RunBoard> board;
  private final RunEvents events;
  private int attempt;

  /**
   * Of a run that begins.
   *
   * @param id text that no other run has at the same time
   * @param title what the run is, in Spark's UI
   * @param prefix path prefix of the files of events, "" for none
   * @param owner uid of the estimator; where empty, nothing is shown on the console and in the UI
   */
  public RunReporter(SparkContext sc, String id, String title, String prefix, Optional<String> owner) {
    this.id = id;
    PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
    this.progress =
        new ProgressLine(owner.isPresent() ? System.err : nowhere, System.console() != null);
    boolean hasBar = sc.getLocalProperty(HAS_BAR) != null;
    ProgressLine shown = hasBar ? new ProgressLine(nowhere, false) : progress;
    this.files = new EventFiles(prefix, sc.hadoopConfiguration());
    this.board = owner.map(uid -> new RunBoard(sc, id, title, uid));
    RunGauges gauges = new RunGauges();
    this.events = new RunEvents(MAX_EVENTS, shown, event -> {
      files.write(event);
      gauges.show(event);
      board.ifPresent(told -> told.tell(event));
    });
  }

  /** Attempt {@code number} begins after {@code step}, the first one with number 0. */
  public void begin(int number, long step) {
    attempt = number;
    files.startFrom(step);
    events.startAttempt(number, step);
  }

  /** Where the events go. */
  public RunEvents events() {
    return events;
  }

  /** Whether anyone sees the run. */
  public boolean isSeen() {
    return board.isPresent();
  }

  /** The run has ended well: tells the account, and what became of the rows. */
  public void end(TrainingSummary summary) {
    ObjectNode event = AccountEvent.of(summary.account(), summary.rowsGiven(), summary.rowsSkipped(),
        summary.rowsUsed());
    events.accept(new RunEvent(id, attempt, Long.MAX_VALUE, event.toString()));
    progress.end("cafetiere  " + summary.rowsText() + "\ncafetiere  " + summary.account().text());
    board.ifPresent(told -> told.end(summary.toJson()));
  }

  /** The run has ended otherwise. */
  public void fail(Throwable why) {
    board.ifPresent(told -> told.fail(why));
  }

  @Override
  public void close() {
    files.close();
    progress.finish();
    board.ifPresent(RunBoard::close);
  }
}
