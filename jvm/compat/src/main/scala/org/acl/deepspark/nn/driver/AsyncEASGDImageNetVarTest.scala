// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.nn.driver

/** Elastic averaging with a period that grows as the loss falls, on a SequenceFile of images as bytes:
  * `AsyncEASGDImageNetVarTest SOLVER NET PARAM [TRAIN]`.
  */
object AsyncEASGDImageNetVarTest {
  def main(args: Array[String]): Unit = Program.run("AsyncEASGDImageNetVarTest", args, "PARAM") { program =>
    program.easgd(program.images("sequence", 0, "/imagenet_train.hsf"), adaptive = true)
    ()
  }
}
