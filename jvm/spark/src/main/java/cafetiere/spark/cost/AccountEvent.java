// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cost;

import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;

/** An account as the last event of a run. */
public final class AccountEvent {
  private AccountEvent() {}

  /** The event, with what became of the rows. */
  public static ObjectNode of(Account account, long given, long skipped, long used) {
    ObjectNode event = Json.object().put("event", "account").put("seconds", account.seconds());
    event.put("cores", account.cores());
    put(account.coreHours(), event);
    if (account.ranks().size() > 1) {
      ArrayNode ranks = event.putArray("ranks");
      for (Account.Rank rank : account.ranks()) put(rank.coreHours(), ranks.addObject().put("name", name(rank)));
    }
    event.put("rows_given", given).put("rows_skipped", skipped).put("rows_used", used);
    if (account.pricePerCoreHour() > 0) event.put("cost", account.cost());
    return event;
  }

  private static void put(CoreHours hours, ObjectNode event) {
    ObjectNode parts = event.putObject("core_hours");
    for (Map.Entry<String, Double> part : hours.parts().entrySet()) parts.put(part.getKey(), part.getValue());
  }

  private static String name(Account.Rank rank) {
    return "rank " + rank.rank() + (rank.executor().isEmpty() ? "" : ", executor " + rank.executor());
  }
}
