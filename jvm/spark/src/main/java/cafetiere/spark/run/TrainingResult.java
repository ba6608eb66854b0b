// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.spark.TrainingSummary;
import cafetiere.spark.util.ModelPart;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import java.io.Serializable;

/**
 * What a training leaves behind.
 *
 * @param model the weights
 * @param state iteration and history; bytes where the weights are, a file where they are one
 * @param summary what the training did
 * @param events the run's events, one JSON object a line
 */
@DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
public record TrainingResult(ModelPart model, ModelPart state, TrainingSummary summary, String events)
    implements Serializable {}
