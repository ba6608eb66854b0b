// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * What Spark's listeners, its event log among them, hear of a run. The log names this class: renaming
 * it loses the runs of old logs.
 *
 * @param run the run's id
 * @param title what it is, in a few words
 * @param part from 0 on, without gaps
 * @param time milliseconds since 1970
 * @param events what happened since the part before: JSON objects, one a line
 * @param result the summary as a JSON object, once the run has ended well; else ""
 * @param failure why it ended otherwise; else ""
 * @param owner the uid of the estimator; null in logs of 0.1
 * @param state "running", "ended", "failed" or "cancelled"; null in logs of 0.1
 */
public record RunUpdate(String run, String title, long part, long time, String events,
    String result, String failure, String owner, String state) implements SparkListenerEvent {}
