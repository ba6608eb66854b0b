// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

/** A small net in the manner of LRCN: words go through an LSTM that sees the picture at each step. */
object CaptionNet {
  /** The words a, red, green, blue, square and bar, the end and what is unknown. */
  val Classes = 8

  /** Numbers of a caption. */
  val Length = 5

  val solver: String =
    """base_lr: 0.01 lr_policy: "fixed" type: "Adam" max_iter: 200 random_seed: 3 snapshot_prefix: "captions"
       train_state { stage: "factored" } test_iter: 1 test_interval: 1000
       test_state { stage: "factored" stage: "predict" }"""

  val net: String = {
    def sentence(name: String) =
      s"""top { name: "${name}_sentence" type: INT_ARRAY channels: $Length sample_num_axes: 1 transpose: true }"""
    s"""name: "captions"
    layer { name: "data" type: "CoSData" top: "data" top: "cont" top: "input" top: "target"
      cos_data_param { batch_size: 15
        top { name: "data" type: ENCODED_IMAGE_WITH_DIM channels: 3 height: 12 width: 12
              transform_param { scale: 0.00390625 } }
        ${sentence("cont")} ${sentence("input")} ${sentence("target")} } }
    layer { name: "picture" type: "InnerProduct" bottom: "data" top: "picture"
      inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
    layer { name: "relu" type: "ReLU" bottom: "picture" top: "picture" }
    layer { name: "embedding" type: "Embed" bottom: "input" top: "embedded"
      embed_param { num_output: 8 input_dim: $Classes bias_term: false
        weight_filler { type: "uniform" min: -0.1 max: 0.1 } } }
    layer { name: "lstm" type: "LSTM" bottom: "embedded" bottom: "cont" bottom: "picture" top: "state"
      include { stage: "factored" }
      recurrent_param { num_output: 24 weight_filler { type: "uniform" min: -0.1 max: 0.1 } } }
    layer { name: "words" type: "InnerProduct" bottom: "state" top: "words"
      inner_product_param { num_output: $Classes axis: 2 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "words" bottom: "target" top: "loss"
      exclude { stage: "predict" } loss_param { ignore_label: -1 } softmax_param { axis: 2 } }
    layer { name: "probabilities" type: "Softmax" bottom: "words" top: "probabilities"
      include { stage: "predict" } softmax_param { axis: 2 } }"""
  }
}
