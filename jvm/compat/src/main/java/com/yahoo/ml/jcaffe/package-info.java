// SPDX-License-Identifier: Apache-2.0
/**
 * CaffeOnSpark's Java interface to Caffe, over this engine: nets that train on what the caller feeds
 * them, alone or connected with others, and the images that they read.
 */
package com.yahoo.ml.jcaffe;
