// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.spark.TrainingSummary;
import java.io.Serializable;

/**
 * What a training leaves behind.
 *
 * @param model the weights, a caffemodel
 * @param state iteration and history, a solverstate
 * @param summary what the training did
 * @param events the run's events, one JSON object a line
 */
public record TrainingResult(byte[] model, byte[] state, TrainingSummary summary, String events)
    implements Serializable {}
