// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The driver's record of a run: every event once and in order, whichever route it came by. Its size
 * is bounded: when it is full every second progress event is dropped, so a long run keeps an even
 * picture of its whole length.
 */
public final class RunEvents {
  private static final Logger LOG = LoggerFactory.getLogger(RunEvents.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final int limit;
  private final ProgressLine progress;
  private final Consumer<JsonNode> files;
  private final List<JsonNode> events = new ArrayList<>();
  private final Set<String> unnumbered = new HashSet<>();
  private int attempt;
  private long lastSequence;
  private long firstStepNanos = -1;

  /** {@code files} gets each event as it comes and must not wait. */
  public RunEvents(int limit, ProgressLine progress, Consumer<JsonNode> files) {
    this.limit = limit;
    this.progress = progress;
    this.files = files;
  }

  /**
   * Starts attempt {@code number}, which resumes after {@code step}: what an earlier attempt
   * reported beyond it will be reported again, and what it may still send is ignored.
   */
  public synchronized void startAttempt(int number, long step) {
    attempt = number;
    lastSequence = 0;
    unnumbered.clear();
    events.removeIf(event -> event.path("step").asLong(0) > step);
  }

  /** Takes an event, unless it is known already or belongs to an attempt that was given up. */
  public synchronized void accept(RunEvent event) {
    if (event.attempt() != attempt) return;
    boolean isNumbered = event.sequence() != RunEvent.UNNUMBERED;
    if (isNumbered ? event.sequence() <= lastSequence : !unnumbered.add(event.json())) return;
    if (isNumbered) lastSequence = event.sequence();
    JsonNode json;
    try {
      json = JSON.readTree(event.json());
    } catch (JsonProcessingException e) {
      LOG.warn("A rank sent an event that is not JSON: {}", e.getMessage());
      return;
    }
    String kind = json.path("event").asText();
    if (kind.equals("log")) {
      LOG.info("{}", json.path("text").asText());
    }
    if (firstStepNanos < 0 && json.path("step").asLong(0) > 0) firstStepNanos = System.nanoTime();
    keep(json);
    progress.show(json);
  }

  /** Takes an event that the driver itself has, of any attempt. */
  public synchronized void note(JsonNode event) {
    keep(event);
  }

  private void keep(JsonNode event) {
    if (events.size() >= limit) thin();
    events.add(event);
    files.accept(event);
  }

  /** {@link System#nanoTime} when the first finished step was heard of; empty if none was. */
  public synchronized OptionalLong firstStepNanos() {
    return firstStepNanos < 0 ? OptionalLong.empty() : OptionalLong.of(firstStepNanos);
  }

  /** The newest step heard of, 0 before the first. */
  public synchronized long step() {
    for (int i = events.size() - 1; i >= 0; i--) {
      if (events.get(i).has("step")) return events.get(i).path("step").asLong();
    }
    return 0;
  }

  /** All events, one JSON object a line. */
  public synchronized String jsonLines() {
    StringBuilder text = new StringBuilder();
    for (JsonNode event : events) text.append(event).append('\n');
    return text.toString();
  }

  private void thin() {
    List<JsonNode> kept = new ArrayList<>();
    boolean drop = true;
    for (JsonNode event : events) {
      boolean progressEvent = event.path("event").asText().equals("progress");
      if (progressEvent) drop = !drop;
      if (!progressEvent || !drop) kept.add(event);
    }
    events.clear();
    // A flood of other events is cut at the front: the newest ones explain what is going on.
    events.addAll(kept.subList(Math.max(0, kept.size() - limit + limit / 4), kept.size()));
  }
}
