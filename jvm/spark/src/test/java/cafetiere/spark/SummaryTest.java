// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.TrainingSummary.Partition;
import cafetiere.spark.cost.Account;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeType;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Each engine fills the same summary. */
@BothLines
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class SummaryTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 40;
  private static final double PRICE = 3.5;
  private static final Map<String, CaffeModel> MODELS = new TreeMap<>();

  @BeforeAll
  static void train() {
    Dataset<Row> table = TestImages.images(TestImages.session(), ROWS);
    MODELS.put("barrier", estimator().fit(table));
    MODELS.put("survivors", estimator().setSurvivors(true).fit(table));
    MODELS.put("rounds", estimator().setEngine("rounds").fit(table));
  }

  @Test
  void itHasTheSameFieldsForEachEngine() {
    Map<String, JsonNodeType> fields = fields("barrier");
    assertEquals(31, fields.size(), fields.toString());
    assertEquals(fields, fields("survivors"));
    assertEquals(fields, fields("rounds"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"barrier", "survivors", "rounds"})
  void itTellsWhatTheTrainingDid(String engine) {
    TrainingSummary summary = MODELS.get(engine).summary();
    assertEquals(engine, summary.engine());
    assertEquals(STEPS, summary.steps());
    assertEquals(0, summary.firstStep());
    assertEquals(1, summary.attempts());
    assertEquals(ROWS, summary.rowsGiven());
    assertEquals(summary.rowsPerEpoch().size(), summary.epochs());
    assertTrue(summary.rowsUsed() > ROWS, summary.toString());
    assertTrue(summary.loss() > 0 && summary.loss() < 3, summary.toString());
    assertEquals(64, summary.sha256().length());
    assertEquals(2, summary.shards());
    assertEquals(2, summary.ranks());
    assertEquals(2, summary.executors());
    assertEquals(false, summary.encrypted());
    assertTrue(summary.rowsPerSecond() > 0 && summary.seconds() > 0, summary.toString());
    assertTrue(summary.secondsToFirstStep() > 0, summary.toString());
    assertTrue(summary.fitSeconds() > summary.secondsToFirstStep(), summary.toString());
    assertTrue(!summary.instructionSet().isEmpty() && !summary.eventsBy().isEmpty());
  }

  @Test
  void whatIsOfOneEngineIsEmptyForOthers() {
    TrainingSummary barrier = MODELS.get("barrier").summary();
    TrainingSummary survivors = MODELS.get("survivors").summary();
    TrainingSummary rounds = MODELS.get("rounds").summary();
    assertEquals(STEPS / 5, rounds.rounds());
    assertEquals(0, barrier.rounds() + survivors.rounds());
    assertEquals(List.of(2, 2, 1),
        List.of(survivors.membersAtStart(), survivors.membersAtEnd(), survivors.views()));
    assertEquals(ROWS, survivors.partitions().stream().mapToLong(Partition::rows).sum());
    assertEquals(List.of(), barrier.partitions());
    assertEquals(List.of(), rounds.partitions());
    assertTrue(barrier.peakBytes() > 0 && survivors.peakBytes() > 0);
  }

  /** Parts of two clocks: the driver's for the whole, the executors' for what ranks did. */
  @ParameterizedTest
  @ValueSource(strings = {"barrier", "survivors", "rounds"})
  void theAccountAddsUpToTheClock(String engine) {
    TrainingSummary summary = MODELS.get(engine).summary();
    Account account = summary.account();
    double whole = summary.fitSeconds() * 2 / 3_600;
    assertEquals(2, account.cores());
    assertEquals(whole, account.coreHours().total(), 0.02 * whole, account.text());
    assertEquals(whole * PRICE, account.cost(), 0.02 * whole * PRICE);
    assertEquals(2, account.ranks().size());
    account.ranks().forEach(rank ->
        assertEquals(whole / 2, rank.coreHours().total(), 0.02 * whole, account.text()));
    double known = account.coreHours().computing() + account.coreHours().data()
        + account.coreHours().network();
    assertTrue(account.coreHours().computing() > 0 && account.coreHours().starting() > 0
        && known <= 2.04 * summary.seconds() / 3_600, account.text());
    assertTrue(account.coreHours().parts().values().stream().allMatch(part -> part >= 0));
  }

  @Test
  void theAccountIsTheLastEvent() {
    MODELS.forEach((engine, model) -> {
      String[] events = model.events().strip().split("\n");
      JsonNode last = Json.parse(events[events.length - 1]);
      TrainingSummary summary = model.summary();
      assertEquals("account", last.path("event").asText(), engine);
      assertEquals(summary.rowsUsed(), last.path("rows_used").asLong(), engine);
      assertEquals(summary.account().coreHours().computing(),
          last.path("core_hours").path("computing").asDouble(), engine);
      assertEquals(summary.account().ranks().size(), last.path("ranks").size(), engine);
    });
  }

  @Test
  void aRunIsExplainedFirstAndTellsEachRanksTimes() {
    MODELS.forEach((engine, model) -> {
      List<JsonNode> events = model.events().lines().map(Json::parse).toList();
      assertEquals("explained", events.get(0).path("event").asText(), engine);
      assertTrue(events.get(0).path("text").asText().contains("InnerProduct"), engine);
      events.stream().filter(event -> event.path("event").asText().equals("progress"))
          .forEach(event -> {
            JsonNode ranks = event.path("ranks");
            assertEquals(2, ranks.path("step_ms").size(), engine + event);
            assertEquals(2, ranks.path("wait_comm").size(), engine + event);
            assertTrue(ranks.path("step_ms").path(1).asDouble() > 0, engine + event);
          });
    });
  }

  @Test
  void itComesBackFromItsJson() {
    MODELS.values().forEach(model ->
        assertEquals(model.summary(), TrainingSummary.fromJson(model.result())));
    assertEquals("", TrainingSummary.fromJson("{}").engine());
  }

  @Test
  void aLossThatIsNoNumberIsNull() {
    TrainingSummary diverged = TrainingSummary.fromJson("{\"loss\": null}");
    assertTrue(Double.isNaN(diverged.loss()));
    assertTrue(Json.parse(diverged.toJson()).path("loss").isNull(), diverged.toJson());
  }

  /** The names in JSON, each with its type. */
  private static Map<String, JsonNodeType> fields(String engine) {
    JsonNode result = Json.parse(MODELS.get(engine).result());
    Map<String, JsonNodeType> fields = new TreeMap<>();
    result.fieldNames().forEachRemaining(
        name -> fields.put(name, result.path(name).getNodeType()));
    return fields;
  }

  private static CaffeEstimator estimator() {
    return new CaffeEstimator()
        .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label")
        .setNumWorkers(2).setSyncMode("average").setSyncPeriod(5)
        .setPricePerCoreHour(PRICE);
  }
}
