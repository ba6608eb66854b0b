// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import java.io.Serializable;

/**
 * What a training leaves behind.
 *
 * @param model the weights, a caffemodel
 * @param state iteration and history, a solverstate
 * @param result the run's summary, a JSON object
 * @param events the run's events, one JSON object a line
 */
public record TrainingResult(byte[] model, byte[] state, String result, String events)
    implements Serializable {}
